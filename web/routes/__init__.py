"""HTTP and WebSocket routes: they validate, call, and map errors."""
