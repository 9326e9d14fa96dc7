image = "not an image"
