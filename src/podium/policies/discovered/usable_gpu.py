"""Keeps free GPU usable: with CPU beside it, and in parts that others can take.

Against a node counts the GPU that would lack CPU once the pod is there, and what the pod leaves
behind on its GPU if that is too small for others; in whole steps, so that nodes that lose about
as much are alike. Among these the fuller GPU wins, and then the node whose free GPU lacks CPU
already: there the pod costs nobody anything.

People wrote the formula fed, which it is nearest to, with its form: what is lost, in whole steps.
They wrote what it adds up of typical, the ingredient lost_gpu_milli; the function starved; and the
quantities gpu_milli_free, tightest_gpu_milli, gpu_milli_wanted, gpu_milli_after, cpu_milli_after,
gpu_milli_behind, stranded_gpu_milli_before, stranded_gpu_milli_after, stranded_gpu_milli_more and
gpu_milli_here. The search put the two together in one term, and changed:

    tuned     CPUS_PER_GPU = 9.9, 10 in fed and typical
    tuned     SMALL_GPU_MILLI = 220, 100 in typical
    tuned     STEPS = 4.2, 4 in fed and typical
    tuned     STRANDED_WEIGHT = 3 and LOST_WEIGHT = 2.7, neither weighted in fed and typical
    added     FINE_WEIGHT * fine_gpu, which decides within a step

On held-out seeds, GPU allocation at 130 % arrived load is 95.42 (percent). Its controls:

    tuned seed (typical)       95.32  lead +0.11 (+0.10 to +0.12), p = 0.0020, 5,809 evaluations
                                     at 100 % -0.13 (-0.15 to -0.12)
    random drawing             95.00  lead +0.43 (+0.42 to +0.44), p = 0.0020, 5,809 evaluations
                                     at 100 % +0.14 (+0.13 to +0.15)

It is called found: it beats its tuned seed by more than chance. That is the chance of the order of
pods: one run of the search stands beside one of each control, and another of either may differ by
more than the lead.

The lead over the tuned seed is small: on the six named traces and the seeds 2000 to 2019 it
reaches 94.29 at 130 %, typical tuned as long 94.17, random drawing 93.62 and fgd 92.89. At
100 % the tuned seed is better, 93.56 against 93.11, by its 2.6 points on gpuspec33, and so is
fed-gpu, 93.35. On perturbed clusters, where the policy leads fgd by 2.43, the tuned seed is better
by 0.08 (0.03 to 0.14), and fed-gpu, which trained on the six traces, is ahead of both: of this
policy by 0.18 (0.12 to 0.24) at 130 % and 0.34 (0.29 to 0.38) at 100 %, on the six and the seeds
7000 to 7004.

Found by a search (run 21cdffbd, candidate 22536, generator genetic, seed 1000, 5,809
evaluations, 347 s, 19 generations from typical), and reduced from 345 parts to 246. Fitness: 1
x (mean GPU allocation (percent) when 130 % of the GPUs were asked for, less 2 points for each
point by which, on any of the traces, the mean at 100 % is more than 0.5 / n below that of fgd,
n being the cases of the trace; the points of several traces are added).

    podium search run --time 340s --workers 15 --seed 1000 --name long

GPU allocation (percent of all GPUs) once 130 % and 100 % of them were asked for, on 10 seeds
that no search saw, and the mean difference to fgd with its 95 % interval:

    openb *                96.27   +0.95 (+0.86 to +1.04)     96.01   +0.88 (+0.77 to +0.99)
    openb:default          96.27   +0.89 (+0.80 to +0.98)     95.99   +0.76 (+0.66 to +0.88)
    openb:cpu050           96.29   +1.05 (+0.99 to +1.10)     96.03   +0.97 (+0.92 to +1.03)
    openb:cpu100           96.26   +0.99 (+0.94 to +1.05)     95.99   +0.88 (+0.82 to +0.93)
    openb:cpu200           96.22   +1.19 (+1.07 to +1.33)     95.85   +1.04 (+0.91 to +1.16)
    openb:cpu250           95.32   +1.98 (+1.81 to +2.13)     94.65   +1.52 (+1.35 to +1.68)
    openb:gpushare40       94.91   +0.75 (+0.69 to +0.80)     94.50   +0.50 (+0.40 to +0.60)
    openb:gpushare60       92.54   +1.12 (+1.06 to +1.18)     92.28   +1.03 (+0.96 to +1.10)
    openb:gpushare80       90.63   +1.37 (+1.32 to +1.42)     90.27   +1.21 (+1.16 to +1.27)
    openb:gpushare100      88.53   +1.66 (+1.59 to +1.74)     88.13   +1.50 (+1.43 to +1.58)
    openb:gpuspec10        96.27   +1.37 (+1.29 to +1.46)     95.98   +1.44 (+1.33 to +1.56)
    openb:gpuspec20        96.28   +1.45 (+1.34 to +1.57)     95.95   +1.30 (+1.17 to +1.44)
    openb:gpuspec25        96.25   +1.46 (+1.35 to +1.58)     95.86   +2.03 (+1.91 to +2.15)
    openb:gpuspec33        96.24   +1.63 (+1.48 to +1.78)     91.00   +3.03 (+2.85 to +3.21)
    openb:multigpu20       96.77   +1.04 (+0.97 to +1.12)     96.49   +0.87 (+0.79 to +0.98)
    openb:multigpu30       97.16   +0.73 (+0.68 to +0.78)     96.92   +0.59 (+0.50 to +0.66)
    openb:multigpu40       97.54   +0.55 (+0.51 to +0.60)     97.32   +0.41 (+0.36 to +0.46)
    openb:multigpu50       97.87   +0.75 (+0.70 to +0.81)     97.67   +0.64 (+0.59 to +0.69)

Mean and p95 waiting (seconds) under replay on 10 seeds that no search saw, likewise:

    openb:16                 714     +34 (-21 to +104)         1643     -36 (-95 to +23)

The search trained on traces with a star, with other seeds. On clusters with other nodes its
mean gain is +2.43 (+2.26 to +2.60). Pods that it placed, in percent of those arrived at 100 %
and 130 %: cpu-only 99.6 and 98.0, share 95.7 and 75.8, 1-gpu 95.2 and 73.5, 2-gpu 94.4 and
72.6, 4-gpu 93.9 and 72.4, 8-gpu 94.6 and 73.2.

What the training fitness loses without each part:

     66.74  gpu_milli_after
     66.74  stranded_gpu_milli_after
     65.00  stranded_gpu_milli_more
     59.38  useless_gpu_milli
     36.99  gpu_milli_left_here
     25.12  cpu_milli_after
     20.78  gpu_milli_free
      3.45  if left >= pod.gpu_milli
      0.59  useless_gpu_steps
      0.58  tightest_gpu_milli
      0.55  gpu_milli_behind
      0.55  lost_gpu_milli
      0.34  starved_gpu_milli
      0.33  fine_gpu
      0.33  FINE_WEIGHT * fine_gpu
      0.26  useless_gpu_milli_more
      0.20  stranded_gpu_milli_before
"""

# CPU milli that a pod usually takes with each GPU milli (tuned within 2 and 60).
CPUS_PER_GPU = 9.9
# GPU milli below which a free part of a GPU is of no use to other pods (tuned within 0 and 1000).
SMALL_GPU_MILLI = 220.0
# What GPU without CPU counts against a node (tuned within -2 and 4).
STRANDED_WEIGHT = 3.0
# What a part too small for others counts (tuned within -2 and 4).
LOST_WEIGHT = 2.7
# Nodes that lose about as much GPU are alike: so many steps for each 1,000 milli (tuned within 1
# and 16). With the weights above, a step is about a twelfth of a GPU.
STEPS = 4.2
# What decides within a step counts half as much as a step for each GPU (tuned within -10 and 10).
FINE_WEIGHT = -0.5
# The same as above for GPU that lacks CPU before the pod comes (tuned within 1 and 60).
CPUS_PER_GPU_2 = 12.0
# Within a step, GPU made useless beside the free part of the GPU (tuned within 0.01 and 10).
USELESS_WEIGHT = 0.35
# Thousandths of a GPU or of a CPU.
MILLI = 1000


def starved(gpu_milli, cpu_milli, cpus_per_gpu):
    """Returns the free GPU that lacks CPU, for pods that take so much CPU with each GPU."""
    return max(0, gpu_milli - cpu_milli / cpus_per_gpu)


def sum_gpu_milli_free(node):
    """Free GPU milli of the node."""
    found = 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        found += left
    return found


def find_tightest_gpu_milli(pod, node):
    """Free part of the fullest GPU on which the pod fits."""
    found = 1000
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= pod.gpu_milli:
            found = min(found, left)
    return found


def score(pod, node, gpu):
    """Scores a pod on a node; the highest score wins."""
    gpu_milli_free = sum_gpu_milli_free(node)
    tightest_gpu_milli = find_tightest_gpu_milli(pod, node)
    # Free GPU milli once the pod is here.
    gpu_milli_after = gpu_milli_free - pod.gpu_count * pod.gpu_milli
    # Free CPU once the pod is here.
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    # What the pod leaves behind on its GPU.
    gpu_milli_behind = tightest_gpu_milli - pod.gpu_milli
    # Free GPU that lacks CPU, if pods take what is usual.
    stranded_gpu_milli_before = max(0, gpu_milli_free - node.cpu_milli_left / CPUS_PER_GPU)
    # Free GPU that lacks CPU once the pod is here.
    stranded_gpu_milli_after = max(0, gpu_milli_after - cpu_milli_after / CPUS_PER_GPU)
    # GPU that loses its CPU to the pod, less the GPU without CPU that the pod takes.
    stranded_gpu_milli_more = stranded_gpu_milli_after - stranded_gpu_milli_before
    # Of what the pod leaves behind, what is too small for others.
    lost_gpu_milli = gpu_milli_behind if gpu_milli_behind < SMALL_GPU_MILLI else 0
    # Free part of the GPU in question: the fuller one is preferred.
    gpu_milli_left_here = node.gpu_milli_left[gpu] if gpu >= 0 else 0
    # GPU that this pod makes useless, in whole steps.
    useless_gpu_milli = STRANDED_WEIGHT * stranded_gpu_milli_more + LOST_WEIGHT * lost_gpu_milli
    useless_gpu_steps = int(STEPS * (useless_gpu_milli / MILLI))
    # Free GPU of the node that lacks CPU already: there the pod costs nobody anything.
    starved_gpu_milli = starved(gpu_milli_free, node.cpu_milli_left, CPUS_PER_GPU_2)
    useless_gpu_milli_more = USELESS_WEIGHT * (useless_gpu_milli - starved_gpu_milli)
    # What decides between nodes within one step.
    fine_gpu = (gpu_milli_left_here + useless_gpu_milli_more) / MILLI
    fine_gpu_score = FINE_WEIGHT * fine_gpu
    return fine_gpu_score - useless_gpu_steps
