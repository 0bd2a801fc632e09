"""The tensors that are compared on, and the files of them that each program reads."""
import os
import random
import subprocess


class Replica:
    """A tensor of `td generate`; iterations and rounds: how many a peer runs, fewer where one takes seconds."""

    def __init__(self, name, flags, dims, iterations, rounds=2, dense=False):
        self.name, self.flags, self.dims = name, flags, dims
        self.iterations, self.rounds, self.dense = iterations, rounds, dense

    def index_bits(self):
        return sum((d - 1).bit_length() for d in self.dims)

    def factor_bytes(self, rank):
        return 8 * rank * sum(self.dims)


CHUNK = 1 << 20
NELL2 = (12092, 9184, 28818)
REPLICAS = [
    Replica("uber", "--like uber", (183, 24, 1140, 1717), 8),
    Replica("nips", "--like nips", (2482, 2862, 14036, 17), 8),
    Replica("chicago", "--like chicago", (6186, 24, 77, 32), 8),
    Replica("vast", "--like vast --nnz 10000000", (165427, 11374, 2), 6),
    Replica("nell2", "--like nell2 --nnz 20000000", NELL2, 5),
    Replica("nell2-fibers", "--like nell2 --nnz 20000000 --fiber 32", NELL2, 5),
    Replica("delicious", "--like delicious --nnz 10000000", (532924, 17262471, 2480308, 1443), 3, rounds=1),
    Replica("dense", "--dims 200x150x12x250 --dense", (200, 150, 12, 250), 3, dense=True),
]


def make_files(td, replica, folder):
    """The tensor's files in the folder that are not there yet."""
    first, second = ("npy", "tdb") if replica.dense else ("tns", "tdb")
    made = [os.path.join(folder, f"{replica.name}.{ending}") for ending in (first, second)]
    if not os.path.exists(made[1]):
        subprocess.run([td, "generate", made[1], *replica.flags.split(), "--quiet"], check=True)
    if not os.path.exists(made[0]):
        subprocess.run([td, "convert", made[1], made[0], "--quiet"], check=True)
    return made


def shuffled(text):
    """A copy with the lines in random order, always the same; td writes entries in ALTO's order, which would spare ALTO
    most of its sorting."""
    source, made = text + ".random", text.removesuffix(".tns") + ".shuffled.tns"
    chance = random.Random(0)
    with open(source, "wb") as out: # shuf takes 4 bytes a line or less, and no line is shorter than 8
        for _ in range(os.path.getsize(text) // 2 // CHUNK + 1):
            out.write(chance.randbytes(CHUNK))
    subprocess.run(["shuf", f"--random-source={source}", "-o", made, text], check=True)
    os.remove(source)
    return made
