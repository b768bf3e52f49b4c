"""Steps: how long they take, and where their time goes."""
