this is another tool's file
