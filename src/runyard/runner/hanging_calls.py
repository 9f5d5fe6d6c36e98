"""Calls to a file system that may never answer, such as a user's directory on a hanging server."""

from typing import Callable, List, TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, question: Callable[[], Answer], otherwise: Answer) -> Answer:
    """The answer, or the default if none came in that time: then its thread is left waiting."""
    import threading  # here: most runs have no use for it

    answers: List[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(question()), daemon=True)
    asking.start()
    asking.join(seconds)
    return answers[0] if answers else otherwise
