"""Frames of live gameplay, as a client receives them."""


def unpack_frame(message: bytes) -> tuple[int, bytes]:
    """Return the agent step and the JPEG of a message."""
    return int.from_bytes(message[:8], "little"), message[8:]
