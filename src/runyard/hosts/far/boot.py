"""The first code on the far side: turns the following standard input into modules, and serves requests."""

import json
import sys
import types
from typing import Any


class Module(types.ModuleType):
    """Compiled when needed: most requests need few of them."""

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__.pop("source", None)
        if source is None:
            raise AttributeError(name)
        exec(compile(source, self.__name__, "exec"), self.__dict__)
        return getattr(self, name)


package = types.ModuleType("far")
package.__path__ = []
sys.modules["far"] = package
for name, size in json.loads(sys.stdin.buffer.readline().decode()):
    module = Module("far." + name)
    module.__dict__.update(__package__="far", source=sys.stdin.buffer.read(size))
    sys.modules[module.__name__] = module
    setattr(package, name, module)

sys.modules["far.server"].FarServer(sys.stdin.buffer, sys.stdout.buffer).serve()
