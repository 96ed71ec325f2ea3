"""Operators that exporters write out, put together again; arithmetic in the forms that targets have."""
