"""Tests of the start-up shim: real interpreters, started as a container would start them.

    PYTHONS=/usr/bin/python3:/opt/py38/bin/python python3 test_shim.py

PYTHONS names the interpreters to try (default: this one). One that has PyTorch is tried with it, without a GPU: a CUDA
of Python functions is put under it, so that initialisation runs. Another gets a stand-in for torch.cuda.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.dirname(HERE)
FAKE = os.path.join(HERE, "fake")
STANDIN = os.path.join(HERE, "standin")
PYTHONS = os.environ.get("PYTHONS", sys.executable).split(":")
GIB = 1 << 30


def has(python, module):
    code = "import importlib.util as u, sys; sys.exit(u.find_spec(%r) is None)" % module
    return subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0


TORCH = {p: has(p, "torch") for p in PYTHONS}


class Shim(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(textwrap.dedent(text))
        return self.path(name)

    def shim(self):
        """A folder with the shim and nothing else, as the container sees it."""
        os.makedirs(self.path("shim"), exist_ok=True)
        shutil.copy(os.path.join(SHIM, "sitecustomize.py"), self.path("shim"))

    def run_python(self, python, *args, path=None, rc=0, quiet=True, cwd=None, **env):
        if path is None:
            path = [SHIM, FAKE] + ([] if TORCH.get(python) else [STANDIN])
        self.log = self.path("log")
        if os.path.exists(self.log):
            os.remove(self.log)
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GPUSLICE", "FAKE", "LOCAL_RANK"))}
        environ.update(GPUSLICE_ALLOCATOR_BYTES=str(8 * GIB), FAKE_LOG=self.log, PYTHONDONTWRITEBYTECODE="1")
        if path:
            environ["PYTHONPATH"] = os.pathsep.join(path)
        environ.update(env)
        r = subprocess.run([python] + list(args), env=environ, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           universal_newlines=True, timeout=300)
        if rc is not None:
            self.assertEqual(r.returncode, rc, python + "\n" + r.stdout + r.stderr)
        if quiet:
            self.assertEqual(r.stderr, "", python)
        self.returncode, self.stderr = r.returncode, r.stderr
        return r.stdout

    def noted(self, what):
        """What the fake CUDA wrote down, as (pid, words)."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as f:
            lines = [line.split() for line in f]
        return [(pid, words) for pid, *words in lines if words[0] == what]

    def each(self, torch=False):
        return [p for p in PYTHONS if TORCH[p] or not torch]

    # When the limit is set.

    def test_program_that_initialises_is_limited(self):
        starts = ["torch.cuda.init()", "torch.cuda.current_device()", "torch.cuda.get_device_properties(0)"]
        for python in self.each():
            for start in starts:
                self.run_python(python, "-c", "import torch, fakecuda\n" + start)
                self.assertEqual([w for _, w in self.noted("fraction")], [["fraction", "0.1", "0"]], start)

    def test_initialisation_from_native_code_is_limited(self):
        """A tensor made on the device reaches torch.cuda._lazy_init from C++; this PyTorch then finds no CUDA kernel."""
        for python in self.each(torch=True):
            for start in ["torch.zeros(1, device='cuda')", "torch.zeros(1).cuda()", "torch.zeros(1).to('cuda:0')",
                          "torch.nn.Linear(1, 1).cuda()", "torch.empty(1, device='cuda', requires_grad=True)"]:
                code = "import torch, fakecuda\ntry:\n    %s\nexcept (NotImplementedError, RuntimeError, AttributeError): pass"
                self.run_python(python, "-c", code % start)
                self.assertEqual([w for _, w in self.noted("fraction")], [["fraction", "0.1", "0"]], start)

    def test_program_that_does_not_initialise_is_left_alone(self):
        code = """
            import torch, fakecuda
            torch.cuda.is_available(); torch.cuda.device_count(); torch.manual_seed(1)
            from torch.utils.data import DataLoader
            print([len(b) for b in DataLoader(list(range(8)), batch_size=4, num_workers=2)])
            x = torch.ones(3, requires_grad=True); (x * 2).sum().backward()
            assert not torch.cuda.is_initialized()"""
        for python in self.each(torch=True):
            out = self.run_python(python, "-c", textwrap.dedent(code))
            self.assertEqual(out, "[4, 4]\n")
            self.assertEqual(self.noted("init"), [])

    def test_pytorch_without_cuda_behaves_as_before(self):
        code = """
            import torch
            print(torch.cuda.is_available(), torch.cuda.is_initialized())
            try: torch.cuda.init()
            except AssertionError as e: print(e)"""
        for python in self.each(torch=True):
            out = self.run_python(python, "-c", textwrap.dedent(code))
            self.assertEqual(out, "False False\nTorch not compiled with CUDA enabled\n")

    def test_torch_is_not_imported(self):
        for python in self.each():
            out = self.run_python(python, "-c", "import sys; print([m for m in sys.modules if 'torch' in m], sys.flags.verbose)")
            self.assertEqual(out, "[] 0\n")

    # Processes.

    def test_fork_before_initialisation(self):
        code = """
            import os, torch, fakecuda
            pid = os.fork()
            if pid == 0:
                torch.cuda.init(); os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            print(pid, torch.cuda.is_initialized())"""
        for python in self.each():
            out = self.run_python(python, "-c", textwrap.dedent(code)).split()
            self.assertEqual(out[1], "False")
            self.assertEqual([pid for pid, _ in self.noted("fraction")], [out[0]])

    def test_fork_after_initialisation_fails_as_before(self):
        code = """
            import os, torch, fakecuda
            torch.cuda.init()
            pid = os.fork()
            if pid == 0:
                try: torch.cuda.init()
                except RuntimeError as e: os._exit(42 if "Cannot re-initialize CUDA" in str(e) else 1)
                os._exit(0)
            print(os.waitpid(pid, 0)[1] >> 8)"""
        for python in self.each():
            self.assertEqual(self.run_python(python, "-c", textwrap.dedent(code)), "42\n")
            self.assertEqual(len(self.noted("fraction")), 1)

    def test_start_methods(self):
        program = self.write("program.py", """
            import multiprocessing, sys
            def work(n):
                import torch, fakecuda
                torch.cuda.init()
            if __name__ == "__main__":
                m = multiprocessing.get_context(sys.argv[1])
                ps = [m.Process(target=work, args=(n,)) for n in range(2)]
                [p.start() for p in ps]; [p.join() for p in ps]
                assert [p.exitcode for p in ps] == [0, 0]
            """)
        for python in self.each():
            for method in ["fork", "spawn", "forkserver"]:
                self.run_python(python, program, method)
                pids = [pid for pid, _ in self.noted("fraction")]
                self.assertEqual((len(pids), len(set(pids))), (2, 2), method)

    def test_torchrun_limits_the_device_of_each_rank(self):
        program = self.write("program.py", "import torch, fakecuda\ntorch.cuda.init()\n")
        for python in self.each(torch=True):
            self.run_python(python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                            "--redirects=1", "--tee=1", "--log_dir=" + self.path("logs"), program, FAKE_COUNT="2", OMP_NUM_THREADS="1", quiet=False)
            self.assertEqual(sorted(w for _, w in self.noted("fraction")), [["fraction", "0.1", "0"], ["fraction", "0.1", "1"]])

    def test_several_devices_in_an_unranked_process_are_left_alone(self):
        for python in self.each():
            self.run_python(python, "-c", "import torch, fakecuda; torch.cuda.init()", FAKE_COUNT="2")
            self.assertEqual(len(self.noted("init")), 1)
            self.assertEqual(self.noted("fraction"), [])

    def test_notebook_kernel(self):
        code = textwrap.dedent("""
            import jupyter_client.manager as m
            km, kc = m.start_new_kernel(kernel_name="python3")
            r = kc.execute_interactive("import torch, fakecuda; torch.cuda.init()", timeout=120)
            print(r["content"]["status"]); kc.stop_channels(); km.shutdown_kernel(now=True)""")
        for python in self.each(torch=True):
            if not (has(python, "ipykernel") and has(python, "jupyter_client")):
                print("no notebook is started with %s: it has no ipykernel" % python)
                continue
            out = self.run_python(python, "-c", code, quiet=False, HOME=self.dir.name)
            self.assertEqual(out.split()[-1], "ok")
            self.assertEqual(len(self.noted("fraction")), 1)

    # Values.

    def test_values(self):
        for python in self.each():
            for value, lines, says in [("", 0, ""), ("0", 0, ""), ("8Gi", 0, "no number of bytes"), (str(80 * GIB), 0, ""),
                                       (str(99 * GIB), 0, ""), ("-5", 0, ""), ("%d" % GIB, 1, "")]:
                self.run_python(python, "-c", "import torch, fakecuda; torch.cuda.init()", quiet=False,
                                GPUSLICE_ALLOCATOR_BYTES=value)
                self.assertEqual(len(self.noted("fraction")), lines, value)
                self.assertIn(says, self.stderr)
                self.assertEqual(bool(says), bool(self.stderr), self.stderr)

    def test_a_program_may_ask_for_less_not_for_more(self):
        code = """
            import torch, fakecuda
            from torch.cuda.memory import set_per_process_memory_fraction as again
            for f in (0.9, 0.05): torch.cuda.set_per_process_memory_fraction(f)
            again(1.0, 0); again(1.0, "cuda:0") if torch.version.cuda else None
            try: again(1)
            except TypeError as e: print(e)"""
        for python in self.each():
            out = self.run_python(python, "-c", textwrap.dedent(code))
            self.assertEqual(out, "Invalid type for fraction argument, must be `float`\n")
            self.assertEqual([w[1] for _, w in self.noted("fraction")], ["0.1", "0.1", "0.05", "0.1"])

    def test_errors_stay_inside(self):
        for python in self.each():
            out = self.run_python(python, "-c", "import torch, fakecuda; torch.cuda.init(); print(torch.cuda.is_initialized())",
                                  quiet=False, FAKE_FAIL="1")
            self.assertEqual(out, "True\n")
            self.assertEqual(self.stderr.count("\n"), 1)
            self.assertIn("gpuslice: no memory limit for PyTorch: CUDA error: out of memory", self.stderr)

    def test_a_torch_without_the_function(self):
        self.write("old/torch/__init__.py", "from . import cuda")
        self.write("old/torch/cuda/__init__.py", "")
        self.write("broken/torch/__init__.py", "from . import cuda")
        self.write("broken/torch/cuda/__init__.py", "raise ImportError('libcudart.so.11.0: cannot open shared object file')")
        for python in self.each():
            out = self.run_python(python, "-c", "import torch.cuda; print(torch.cuda.__name__)", path=[SHIM, self.path("old")])
            self.assertEqual(out, "torch.cuda\n")
            code = "try:\n import torch\nexcept ImportError as e: print(e)"
            out = self.run_python(python, "-c", code, path=[SHIM, self.path("broken")])
            self.assertEqual(out, "libcudart.so.11.0: cannot open shared object file\n")

    # What others see of it.

    def test_import_machinery_is_unchanged_for_others(self):
        code = """
            import importlib, importlib.util, inspect, pkgutil, torch, fakecuda
            for m in (torch.cuda, torch.cuda.memory):
                assert type(m.__loader__).__name__ == "SourceFileLoader" and m.__spec__.loader is m.__loader__, m.__loader__
            assert "_lazy_call" in inspect.getsource(torch.cuda)
            assert pkgutil.get_data("torch.cuda", "__init__.py")
            assert importlib.util.find_spec("torch.cuda").origin == torch.cuda.__file__
            assert torch.cuda.set_per_process_memory_fraction.__name__ == "set_per_process_memory_fraction"
            import pickle; pickle.dumps(torch.cuda.set_per_process_memory_fraction)"""
        for python in self.each():
            self.run_python(python, "-c", textwrap.dedent(code))

    def test_from_a_zip(self):
        with zipfile.ZipFile(self.path("app.pyz"), "w") as z:
            z.write(os.path.join(FAKE, "fakecuda.py"), "fakecuda.py")
            for name in ["__init__.py", "cuda/__init__.py", "cuda/memory.py"]:
                z.write(os.path.join(STANDIN, "torch", name), "torch/" + name)
            z.writestr("__main__.py", "import torch, fakecuda; torch.cuda.init(); print(type(torch.cuda.__loader__).__name__)")
        for python in self.each():
            out = self.run_python(python, self.path("app.pyz"), path=[SHIM])
            if sys.version_info >= (3, 10) or "zipimporter" in out:
                self.assertEqual(out, "zipimporter\n")
            # zipimporter has no exec_module before 3.10, and is then left alone.
            version = subprocess.check_output([python, "-c", "import sys; print(sys.version_info >= (3, 10))"], text=True)
            self.assertEqual(len(self.noted("fraction")), 1 if version == "True\n" else 0)

    # Other start-up code.

    def test_the_hidden_sitecustomize_runs(self):
        self.write("theirs/sitecustomize.py", "import os, sys\nvalue = 7\nsys.stdout.write('theirs ')")
        for python in self.each():
            out = self.run_python(python, "-c", "import sitecustomize as s; print(s.value, s.__file__.split('/')[-2])",
                                  path=[SHIM, self.path("theirs")])
            self.assertEqual(out, "theirs 7 theirs\n")

    def test_one_before_ours_that_chains(self):
        """As ddtrace and OpenTelemetry do: take oneself off the path and import sitecustomize again."""
        self.write("tracer/sitecustomize.py", """
            import os, sys
            here = os.path.dirname(os.path.abspath(__file__))
            sys.stdout.write("tracer ")
            saved = sys.modules.pop("sitecustomize", None)
            kept = list(sys.path)
            sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
            try: import sitecustomize
            except ImportError: sys.modules["sitecustomize"] = saved
            finally: sys.path[:] = kept
            """)
        self.write("stays/sitecustomize.py", """
            import importlib.machinery, importlib.util, os, sys
            here = os.path.dirname(os.path.abspath(__file__))
            sys.stdout.write("stays ")
            rest = sys.path[[os.path.abspath(p) for p in sys.path].index(here) + 1:]
            spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            """)
        self.write("theirs/sitecustomize.py", "import sys\nsys.stdout.write('theirs ')")
        tail = [FAKE, STANDIN]
        for python in self.each():
            for order in (["tracer", "shim", "theirs"], ["shim", "tracer", "theirs"], ["stays", "shim", "theirs"],
                          ["shim", "stays", "theirs"]):
                self.shim()
                out = self.run_python(python, "-c", "import torch, fakecuda; torch.cuda.init()",
                                      path=[self.path(p) for p in order] + tail)
                self.assertEqual(out.split(), [name for name in order if name != "shim"], order)
                self.assertEqual(len(self.noted("fraction")), 1, order)

    def test_errors_of_the_hidden_one_are_as_before(self):
        for name, text in [("raises", "raise ValueError('theirs')"), ("exits", "import sys; sys.exit(3)"),
                           ("imports", "import no_such_module"), ("broken", "def")]:
            self.write(name + "/sitecustomize.py", text)
            for python in self.each():
                seen = []
                for path in [self.path(name)], [SHIM, self.path(name)]:
                    out = self.run_python(python, "-c", "print(1)", path=path, quiet=False, rc=None)
                    seen.append((self.returncode, out, self.stderr.splitlines()[-2:]))
                self.assertEqual(seen[0], seen[1], name)

    def test_usercustomize_still_runs(self):
        self.write("theirs/usercustomize.py", "import sys\nsys.stdout.write('user ')")
        for python in self.each():
            want = self.run_python(python, "-c", "print(1)", path=[self.path("theirs")])  # a virtual environment runs none
            self.assertEqual(self.run_python(python, "-c", "print(1)", path=[SHIM, self.path("theirs")]), want)

    def test_virtual_environment(self):
        for python in self.each():
            inside = subprocess.call([python, "-c", "import sys; sys.exit(sys.prefix != sys.base_prefix)"])
            if inside or not has(python, "venv"):
                print("no virtual environment is made with %s: it has no venv, or is in one" % python)
                continue
            where = self.path("venv-" + str(abs(hash(python))))
            subprocess.check_call([python, "-m", "venv", "--without-pip", "--system-site-packages", where])
            inner = os.path.join(where, "bin", "python")
            out = subprocess.check_output([inner, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
            with open(os.path.join(out.strip(), "sitecustomize.py"), "w") as f:
                f.write("import sys\nsys.stdout.write('venv ')")
            path = [SHIM, FAKE] + ([] if TORCH[python] else [STANDIN])
            # Debian's own sitecustomize hides the environment's, with the shim or without.
            want = self.run_python(inner, "-c", "pass", path=[])
            out = self.run_python(inner, "-c", "import torch, fakecuda; torch.cuda.init()", path=path)
            self.assertEqual(out, want)
            self.assertEqual(len(self.noted("fraction")), 1)

    def test_interpreters_that_ignore_the_environment(self):
        for python in self.each():
            for flag, loaded in [("-s", True), ("-O", True), ("-B", True), ("-u", True), ("-E", False), ("-I", False), ("-S", False)]:
                out = self.run_python(python, flag, "-c", "import sys; print(any(type(f).__name__ == '_Finder' for f in sys.meta_path))",
                                      path=[SHIM])
                self.assertEqual(out, "%s\n" % loaded, flag)

    def test_other_interpreters_are_quiet(self):
        for python in filter(None, os.environ.get("OLD_PYTHONS", "").split(":")):
            self.assertEqual(self.run_python(python, "-c", "print(1)", path=[SHIM]), "1\n")

    def test_the_hidden_sitecustomize_runs_on_other_interpreters(self):
        self.write("theirs/sitecustomize.py", "import os, sys\nvalue = 7\nsys.stdout.write('theirs ')")
        self.write("package/sitecustomize/__init__.py", "import sys\nvalue = 8\nsys.stdout.write('package ')")
        self.write("raises/sitecustomize.py", "raise ValueError('raises')")
        self.shim()
        for python in filter(None, os.environ.get("OLD_PYTHONS", "").split(":")):
            code = "import sitecustomize as s; print(s.value)"
            for shim in [SHIM], [self.path("theirs"), SHIM], [self.path("shim"), SHIM]:
                self.assertEqual(self.run_python(python, "-c", code, path=shim + [self.path("theirs")]), "theirs 7\n")
            self.assertEqual(self.run_python(python, "-c", code, path=[SHIM, self.path("package")]), "package 8\n")
            seen = []
            for path in [self.path("raises")], [SHIM, self.path("raises")]:
                out = self.run_python(python, "-c", "print(1)", path=path, quiet=False, rc=None)
                seen.append((self.returncode, out, self.stderr.splitlines()[-2:]))
            self.assertEqual(seen[0], seen[1])


if __name__ == "__main__":
    unittest.main(verbosity=1)
