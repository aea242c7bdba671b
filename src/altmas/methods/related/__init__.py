"""Published methods by others, as their papers give them."""
