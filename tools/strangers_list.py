# SPDX-License-Identifier: GPL-2.0-or-later
"""
The programs of `make accept WHAT=strangers`: five of Debian with inputs that are written here, one of torch without MPI, and
three of this repository whose structure such programs have. tools/deps.sh installs the packages.
"""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from jobs import ROOT, path  # noqa: E402
from programs_list import CPUS, Installed, Mpi4py, Program  # noqa: E402

KINDS = ("hog", "stop", "quota")  # of programs whose ranks cannot be made late
LIMIT = 120
FOREVER = 10**6
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def call(command, directory, env=None):
    done = subprocess.run(list(map(str, command)), cwd=directory, capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, **(env or ONE_THREAD)}, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")


def write(directory, name, text):
    name = os.path.join(directory, name)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def matching(name, pattern):
    with open(name, encoding="utf-8", errors="replace") as file:
        return [line.rstrip() for line in file if re.search(pattern, line)]


class Stranger(Installed):
    """A program of a package: input(directory, steps) writes its input, result(directory, out) has what must not differ."""
    kinds, log, ends, env, wanted = KINDS, None, False, ONE_THREAD, 0.0

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        return [self.file, *self.input(directory, work or FOREVER)]

    def cost(self, job, usage_s):
        return usage_s


class Gromacs(Stranger):
    """Molecular dynamics of a box of water: eight boxes of the package, which fit each other."""
    source = "gmx_mpi"
    TOPOLOGY = '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n[ molecules ]\n'
    SETTINGS = ("integrator = md\ndt = 0.001\nnsteps = 1000000\nnstlog = 20\nnstenergy = 20\nnstcalcenergy = 20\ncutoff-scheme = Verlet\n"
                "coulombtype = PME\nrcoulomb = 0.9\nrvdw = 0.9\ngen-vel = yes\ngen-temp = 300\ngen-seed = 7\nconstraints = none\n")

    def input(self, directory, steps):
        if not os.path.exists(os.path.join(directory, "run.tpr")):
            write(directory, "topol.top", self.TOPOLOGY)
            write(directory, "run.mdp", self.SETTINGS)
            call(["gmx", "-quiet", "solvate", "-cs", "spc216.gro", "-box", 3.72412, "-o", "water.gro", "-p", "topol.top"], directory)
            call(["gmx", "-quiet", "grompp", "-f", "run.mdp", "-c", "water.gro", "-p", "topol.top", "-o", "run.tpr", "-maxwarn", 2], directory)
        return ["mdrun", "-s", "run.tpr", "-deffnm", "run", "-nsteps", steps, "-ntomp", 1, "-pin", "off", "-reprod", "-notunepme", "-noconfout",
                "-nobackup"]

    def result(self, directory, out):
        """All energies that it has written, in full."""
        lines = open(os.path.join(directory, "run.log"), encoding="utf-8", errors="replace").read()
        return re.findall(r"^(?: +-?\d\.\d+e[+-]\d+)+$", lines.partition("Started mdrun")[2].partition("A V E R A G E S")[0], re.M)


class Espresso(Stranger):
    """Quantum ESPRESSO: molecular dynamics of eight atoms of silicon, k points divided among the ranks."""
    source = "pw.x"
    PLACES = "\n".join(f"Si {x:.3f} {y:.3f} {z:.3f}" for x, y, z in
                       ((0.01, 0, 0), (0, .5, .5), (.5, 0, .5), (.5, .5, 0), (.25, .25, .25), (.25, .75, .75), (.75, .25, .75), (.75, .75, .25)))

    def input(self, directory, steps):
        found = sorted(glob.glob("/usr/share/espresso/**/Si.pz-vbc.*", recursive=True))  # needs few plane waves
        if not found:
            raise RuntimeError("the package has no pseudopotential of silicon")
        write(directory, "si.in",
              f"&control\n calculation='md', pseudo_dir='{os.path.dirname(found[0])}', outdir='./out', prefix='si', dt=20, nstep={steps}, "
              "disk_io='none'\n/\n&system\n ibrav=1, celldm(1)=10.2, nat=8, ntyp=1, ecutwfc=12, nosym=.true.\n/\n&electrons\n conv_thr=1d-8\n/\n&ions\n/\n"
              f"ATOMIC_SPECIES\nSi 28.086 {os.path.basename(found[0])}\nATOMIC_POSITIONS crystal\n{self.PLACES}\nK_POINTS automatic\n2 2 2 1 1 1\n")
        return ["-nk", 2, "-in", "si.in"]

    def result(self, directory, out):
        return re.findall(r"^!.*", out, re.M)


class Nwchem(Stranger):
    """NWChem: the energy of six molecules of water, again and again; its data are reached by one-sided calls."""
    source = "nwchem"
    WATER = "\n".join(f"{atom} {x + 2.9 * i:.3f} {y + 0.3 * i:.3f} {z:.3f}" for i in range(6) for atom, x, y, z in
                      (("O", 0, 0, 0.117), ("H", 0, 0.757, -0.469), ("H", 0, -0.757, -0.469)))

    def input(self, directory, steps):
        tasks = "task scf energy\n" * min(steps, 20000)
        write(directory, "water.nw", "start water\npermanent_dir .\nscratch_dir .\nprint low\ngeometry units angstroms noautosym\n"
              f"{self.WATER}\nend\nbasis\n * library 6-31g**\nend\nscf\n direct\n vectors input atomic\nend\n{tasks}")
        return ["water.nw"]

    def result(self, directory, out):
        """Sums are formed in the order in which contributions come: the last digits differ from run to run."""
        return [f"{float(energy):.7f}" for energy in re.findall(r"Total SCF energy = +(\S+)", out)]


class Openfoam(Stranger):
    """OpenFOAM: flow in a cavity whose lid moves, divided in two."""
    source, env = "icoFoam", {**ONE_THREAD, "WM_PROJECT_DIR": "/usr/share/openfoam"}
    HEAD = "FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"
    CELLS = 120

    def put(self, directory, place, name, text, kind="dictionary"):
        write(directory, os.path.join(place, name), self.HEAD.format(kind=kind, name=name) + text + "\n")

    def input(self, directory, steps):
        control = ("application icoFoam; startFrom startTime; startTime 0; stopAt endTime; endTime {end}; deltaT 0.0005; writeControl timeStep; "
                   "writeInterval {end_steps}; purgeWrite 1; writeFormat ascii; writePrecision 10; timeFormat general; runTimeModifiable false;")
        self.put(directory, "system", "controlDict", control.format(end=0.0005 * steps, end_steps=10 * steps))
        if os.path.isdir(os.path.join(directory, "processor1")):
            return ["-parallel"]
        solver = "{ solver %s; %s tolerance 1e-7; relTol 0; }"
        self.put(directory, "system", "fvSolution", "solvers { p " + solver % ("PCG", "preconditioner DIC;") + " pFinal { $p; } U "
                 + solver % ("smoothSolver", "smoother symGaussSeidel;") + " } PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }")
        self.put(directory, "system", "fvSchemes", "ddtSchemes { default Euler; } gradSchemes { default Gauss linear; } divSchemes { default none; "
                 "div(phi,U) Gauss linear; } laplacianSchemes { default Gauss linear orthogonal; } interpolationSchemes { default linear; } "
                 "snGradSchemes { default orthogonal; }")
        self.put(directory, "system", "decomposeParDict", "numberOfSubdomains 2; method simple; simpleCoeffs { n (2 1 1); delta 0.001; }")
        corners = " ".join(f"({x} {y} {z})" for z in (0, 0.1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)))
        self.put(directory, "system", "blockMeshDict", f"scale 0.1; vertices ({corners}); blocks (hex (0 1 2 3 4 5 6 7) ({self.CELLS} {self.CELLS} 1) "
                 "simpleGrading (1 1 1)); edges (); boundary (lid { type wall; faces ((3 7 6 2)); } walls { type wall; faces ((0 4 7 3) (2 6 5 1) "
                 "(1 5 4 0)); } sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }); mergePatchPairs ();")
        self.put(directory, "constant", "transportProperties", "nu 0.01;")
        self.put(directory, "0", "p", "dimensions [0 2 -2 0 0 0 0]; internalField uniform 0; boundaryField { lid { type zeroGradient; } "
                 "walls { type zeroGradient; } sides { type empty; } }", "volScalarField")
        self.put(directory, "0", "U", "dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0); boundaryField { lid { type fixedValue; value uniform "
                 "(1 0 0); } walls { type noSlip; } sides { type empty; } }", "volVectorField")
        for tool in ("blockMesh", "decomposePar"):
            call([tool], directory, self.env)
        return ["-parallel"]

    def result(self, directory, out):
        return re.findall(r"Initial residual = \S+, Final residual = \S+", out)


class Ranks(Program):
    """Ranks without MPI, each started by hand with its place in the job, on a CPU of its own."""
    mpi, kinds, ends = False, KINDS, True
    port = 29540
    SCRIPT = ('port=$1; shift; pids=; for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port '
              f'taskset -c $((rank % {CPUS})) "$@" & pids="$pids $!"; done; status=0; for pid in $pids; do wait $pid || status=$?; done; exit $status')

    def command(self, words, ranks=None):
        Ranks.port += 1
        return ["sh", "-c", self.SCRIPT, "ranks", str(Ranks.port), *map(str, words)]

    def result(self, directory, out):
        return re.findall(r'"rounds":\d+,"wrong":\d+', out)


class Torch(Ranks):
    """Data-parallel training over gloo."""
    log, wanted, source, env = None, 0.0, "/usr/bin/python3", {"PYTHONHOME": "/usr", **ONE_THREAD}
    prepare = Installed.prepare

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        script = os.path.join(ROOT, "tools", "workloads", "ddp_steps.py")
        return [self.file, script, *(("--rounds", work) if work else ("--seconds", seconds))]

    def cost(self, job, usage_s):
        return usage_s

    def result(self, directory, out):
        return re.findall(r"^loss .*", out, re.M)


class Own(Program):
    """A program of this repository, which checks its results itself."""

    def result(self, directory, out):
        return re.findall(r'"rounds":\d+,"wrong":\d+', out)


class Python(Mpi4py):
    def result(self, directory, out):
        return re.findall(r'"rounds": ?\d+, ?"wrong": ?\d+', out)


# The amount of work is for equal results: some seconds.
PROGRAMS = {program.name: program for program in (
    Gromacs("gromacs", 400), Espresso("espresso", 3), Nwchem("nwchem", 4), Openfoam("openfoam", 100), Python("mpi4py_stranger", 300),
    Own("sweeps", 300, wanted=0.5), Own("one_sided", 800, wanted=0.0), Own("farm", 1500, wanted=0.0, kinds=KINDS),
    Ranks("peers", 800, wanted=0.0), Torch("ddp", 200),
)}
