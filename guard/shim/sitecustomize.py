"""Gives PyTorch the memory limit of its slice when, and only when, the program itself initialises CUDA.

Python imports the first sitecustomize of its path at every start, before the program. This one leaves a note for the
import of torch.cuda and is done; it imports no framework, opens no device, ends no program. Every Python of the
container runs this file, whatever its version, so Python 2.7 must be able to read it.

GPUSLICE_ALLOCATOR_BYTES  what the process's caching allocator may hold on each device
GPUSLICE_SHIM_VERBOSE     when not empty, says on stderr what was set
"""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _say(text):
    try:
        sys.stderr.write("gpuslice: %s\n" % text)
    except Exception:
        pass


class _Loader(object):
    """The loader of one module, with a call after the module ran. The module sees its real loader only."""

    def __init__(self, loader, then):
        self._loader, self._then = loader, then

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._then(module)
        except Exception as e:
            _say("no memory limit for %s: %s" % (module.__name__, e))


class _Finder(object):
    """Finds nothing itself: asks the others for the modules of the table and adds the call."""

    gpuslice = True

    def __init__(self, then):
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name not in self._then:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._then[name])
                return spec
        return None


def _bytes():
    text = os.environ.get("GPUSLICE_ALLOCATOR_BYTES", "")
    if not text:
        return 0
    try:
        return max(0, int(text))
    except ValueError:
        _say("GPUSLICE_ALLOCATOR_BYTES is no number of bytes: %r" % text)
        return 0


def _devices(cuda):
    """The devices to limit. Up to PyTorch 2.4 at least the call opens a context on its device: one process of several
    that all see several devices must leave those of its siblings alone."""
    n = cuda.device_count()
    if n == 1:
        return [0]
    rank = os.environ.get("LOCAL_RANK", "")
    return [int(rank)] if rank.isdigit() and int(rank) < n else []


def _torch_cuda(cuda):
    """torch.cuda was imported, CUDA is not initialised: what _lazy_call is given runs inside torch.cuda._lazy_init."""
    import functools

    limit = _bytes()
    original = getattr(cuda, "set_per_process_memory_fraction", None)
    if not limit or original is None:  # before 1.8
        return

    def share(device):
        """The slice as a part of what CUDA calls the device's memory; 1 where that is the slice already."""
        return min(1.0, float(limit) / cuda.get_device_properties(device).total_memory)

    def cap():
        try:
            for device in _devices(cuda):
                f = share(device)
                if f < 1.0:
                    original(f, device)
                if os.environ.get("GPUSLICE_SHIM_VERBOSE"):
                    _say("device %s: allocator limit %d bytes, fraction %.6f" % (device, limit, f))
        except Exception as e:  # an error here would become the program's DeferredCudaCallError
            _say("no memory limit for PyTorch: %s" % e)

    @functools.wraps(original)  # found by its old name: pickle, inspect
    def set_per_process_memory_fraction(fraction, device=None):
        if isinstance(fraction, float):  # the original denies everything else, as always
            try:
                fraction = min(fraction, share(cuda.current_device() if device is None else device))
            except Exception as e:
                _say("the program's own memory fraction is kept: %s" % e)
        return original(fraction, device)

    cuda._lazy_call(cap)
    cuda.set_per_process_memory_fraction = set_per_process_memory_fraction
    memory = sys.modules.get("torch.cuda.memory")
    if memory is not None:
        memory.set_per_process_memory_fraction = set_per_process_memory_fraction


def _rest():
    """Where the sitecustomize that this one hides may be. Only what comes after us: who runs us from before has had its turn."""
    known = [os.path.abspath(p) for p in sys.path]
    return sys.path[known.index(_here) + 1:] if _here in known else sys.path


def _next():
    """Runs the sitecustomize that this one hides. Its errors are its own, as they would have been without us."""
    rest = _rest()
    for finder in sys.meta_path:
        # importlib.util and importlib.machinery would find it too, and cost every start of Python some 5 ms.
        if getattr(finder, "__name__", "") == "PathFinder":
            spec = finder.find_spec("sitecustomize", rest)
            break
    else:
        return
    if spec is None or spec.loader is None or os.path.dirname(os.path.abspath(spec.origin or "")) == _here:
        return
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _next_before_36():
    """_next, where importlib cannot do it."""
    import imp

    try:
        file, path, kind = imp.find_module("sitecustomize", _rest())
    except ImportError:
        return
    try:
        if os.path.dirname(os.path.abspath(path)) == _here:
            return
        ours = sys.modules.pop("sitecustomize", None)  # Python 2 empties a module that nobody holds
        imp.load_module("sitecustomize", file, path, kind)
        del ours
    finally:
        if file is not None:
            file.close()


if sys.version_info >= (3, 6):
    try:
        # Once: start-up code of others may import sitecustomize again.
        if _bytes() and not any(getattr(f, "gpuslice", False) for f in sys.meta_path):
            sys.meta_path.insert(0, _Finder({"torch.cuda": _torch_cuda}))
    except Exception as e:
        _say("%s: %s" % (type(e).__name__, e))
    _next()
else:
    _next_before_36()
