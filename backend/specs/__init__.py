"""What one may ask for and what an engine may say: pydantic models, no behaviour beyond checking."""
