"""What the workers of a process pool draw; a module of its own, since spawned workers import it by its name."""

from matrixdp import Stream

SHARED = Stream()


def draw_words(_):
    """Words of a stream that the module made, and of a new one."""
    return SHARED.words(64).tobytes() + Stream().words(64).tobytes()
