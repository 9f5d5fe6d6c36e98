"""A yard that is killed after a request is committed and before it is acknowledged: `doomed_desk.py HOME STORE URL`."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from runyard.bridges import formats
from runyard.broker.address import BrokerAddress
from runyard.broker.amqp import Connection
from runyard.broker.intake import Reception
from runyard.model.intake import Intake
from runyard.settings import Settings
from runyard.store import open_store
from runyard.yard import Yard

home, store, url = sys.argv[1:]
yard = Yard(Settings(home=Path(home)), open_store(store, clock=lambda: 1_000_000.0))  # the clock of the test


class Desk:
    def accept(self, *words: Any, **more: Any) -> Future[Any]:
        yard.requests.accept(*words, **more).result()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    def refuse(self, *words: Any) -> Future[Any]:
        raise AssertionError("the request is good")


connection = Connection(BrokerAddress.parse(url)).start()
reception = Reception(connection, Intake.parse_table("tasks", {}), formats.load("tasks", "format"), Desk(), 1 << 20)
reception.drain(time.monotonic() + 60)
sys.exit("nothing came")
