"""The process edge: settings, application, routes, metrics."""
