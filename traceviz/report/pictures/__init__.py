"""What a page draws beside the report: values, independent of what they were made from and of how they are drawn."""
