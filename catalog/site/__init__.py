"""The catalogue as pages of the documentation, generated when it is built: static, no server, light and dark."""
