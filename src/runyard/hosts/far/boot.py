"""The first that runs on the far side: turns what follows on standard input into modules, and serves one request."""

import json
import sys
import types

package = types.ModuleType("far")
package.__path__ = []
sys.modules["far"] = package
for name, size in json.loads(sys.stdin.buffer.readline().decode()):
    module = types.ModuleType("far." + name)
    module.__package__ = "far"
    sys.modules[module.__name__] = module
    exec(compile(sys.stdin.buffer.read(size), "far/" + name, "exec"), module.__dict__)
    setattr(package, name, module)

sys.modules["far.desk"].Desk(sys.stdin.buffer, sys.stdout.buffer).serve()
