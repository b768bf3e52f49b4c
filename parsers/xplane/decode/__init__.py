"""XPlane files as columns, by the compiled scanner or through protobuf."""
