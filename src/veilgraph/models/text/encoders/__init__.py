"""How a text becomes numbers, one small file each; a new file is found by itself."""
