"""The capture as a whole: of what kind it is, whether it trains, and what cannot be judged in it."""
