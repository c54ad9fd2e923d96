"""Keeps GPU usable: not in small parts, and with CPU beside it.

Against a node counts the GPU that the pod would make useless there, in steps of an eighth of a
GPU: GPU that is left without the CPU that pods usually take with it, and parts of a GPU that
are too small for others. Between nodes within one step the same decides without steps, with all
that the pod leaves behind on its GPU. The reason is that of fragmentation as FGD defines it:
free GPU counts only if a typical pod can use it.

People wrote the formula typical, which it is nearest to, and the quantities tightest_gpu_milli,
gpu_milli_wanted, cpu_milli_after, gpu_milli_behind, lost_gpu_milli, usable_gpu_milli_before,
gpu_milli_spent, usable_gpu_milli_taken, usable_gpu_milli_after, starved_gpu_milli_before,
starved_gpu_milli_after and starved_gpu_milli_more. The search changed:

    tuned     CPUS_PER_GPU = 7.21, 10 in typical
    tuned     SMALL_GPU_MILLI = 470, 100 in typical
    tuned     a number = 509, 1000 in typical
    added     (starved_gpu_milli_more + gpu_milli_behind) / SCALE_GPU_MILLI

On the same seeds and the six traces that it was trained on, the added term gains 0.08 points
(0.06 to 0.10) at 130 % arrived load over typical with the same numbers, and loses 0.11 (0.09 to
0.13) at 100 %: more than a point there on openb:gpuspec33.

On held-out seeds, GPU allocation at 130 % arrived load is 93.95 (percent). Its controls:

    tuned seed (typical)       94.01  lead -0.06 (-0.08 to -0.05), p = 0.0020, 883 evaluations
                                     at 100 % -0.14 (-0.16 to -0.11)
    random drawing             93.63  lead +0.32 (+0.31 to +0.34), p = 0.0020, 900 evaluations
                                     at 100 % +0.41 (+0.38 to +0.44)

It is called tuned: it does not beat its tuned seed by more than chance.

The controls were run after the search, on 200 nodes of each of its training cases, with fewer
evaluations than it had; they are compared on 10 seeds of the six traces that it was trained on.

Tuned by a search (run 66511c31, candidate 1679, generator genetic, seed 1005, 1,782
evaluations, 562 s, 8 generations of ancestors), and reduced from 180 parts to 177. Fitness: 1 x
(mean GPU allocation (percent) when 130 % of the GPUs were asked for, less 2 points for each
point by which the mean at 100 % is more than 0.5 below that of fgd).

    podium search run --trace openb:default --trace openb:cpu250 --trace openb:gpushare60
        --trace openb:gpushare100 --trace openb:gpuspec33 --trace openb:multigpu20 --nodes
        600 --seeds 1 --time 13m --start seeds --workers 2 --time-limit 20 --tune-every 2
        --tune-evaluations 60 --batch 48 --largest 130 --seed 1005

GPU allocation (percent of all GPUs) once 130 % and 100 % of them were asked for, on 10 seeds
that no search saw, and the mean difference to fgd with its 95 % interval:

    openb                  96.09   +0.77 (+0.70 to +0.85)     95.98   +0.85 (+0.77 to +0.92)
    openb:default *        96.09   +0.70 (+0.63 to +0.80)     95.99   +0.75 (+0.67 to +0.86)
    openb:cpu050           96.09   +0.85 (+0.80 to +0.90)     95.99   +0.93 (+0.88 to +0.98)
    openb:cpu100           96.08   +0.81 (+0.74 to +0.87)     95.99   +0.87 (+0.80 to +0.95)
    openb:cpu200           96.10   +1.08 (+0.94 to +1.22)     95.99   +1.17 (+1.03 to +1.32)
    openb:cpu250 *         95.08   +1.73 (+1.59 to +1.88)     94.74   +1.61 (+1.47 to +1.76)
    openb:gpushare40       94.64   +0.48 (+0.43 to +0.54)     94.51   +0.51 (+0.45 to +0.58)
    openb:gpushare60 *     92.22   +0.80 (+0.75 to +0.85)     92.06   +0.81 (+0.75 to +0.87)
    openb:gpushare80       90.15   +0.89 (+0.83 to +0.95)     89.95   +0.89 (+0.83 to +0.95)
    openb:gpushare100 *    87.93   +1.06 (+0.96 to +1.16)     87.69   +1.07 (+0.97 to +1.17)
    openb:gpuspec10        96.05   +1.15 (+1.05 to +1.25)     95.94   +1.40 (+1.29 to +1.52)
    openb:gpuspec20        95.91   +1.07 (+0.95 to +1.19)     95.79   +1.14 (+1.01 to +1.28)
    openb:gpuspec25        95.80   +1.02 (+0.90 to +1.13)     95.68   +1.86 (+1.69 to +2.01)
    openb:gpuspec33 *      95.82   +1.21 (+1.08 to +1.33)     92.98   +5.00 (+4.79 to +5.20)
    openb:multigpu20 *     96.55   +0.82 (+0.75 to +0.91)     96.45   +0.84 (+0.76 to +0.93)
    openb:multigpu30       96.94   +0.52 (+0.47 to +0.56)     96.85   +0.52 (+0.48 to +0.56)
    openb:multigpu40       97.26   +0.27 (+0.18 to +0.35)     97.15   +0.25 (+0.16 to +0.33)
    openb:multigpu50       97.58   +0.47 (+0.40 to +0.53)     97.50   +0.46 (+0.39 to +0.52)

Mean and p95 waiting (seconds) under replay on 10 seeds that no search saw, likewise:

    openb:16                 434    -246 (-730 to +9)          1641     -38 (-101 to +22)

The search trained on traces with a star, with other seeds. On clusters with other nodes its
mean gain is +2.80 (+2.64 to +2.97). Pods that it placed, in percent of those arrived at 100 %
and 130 %: cpu-only 99.7 and 98.2, share 95.7 and 74.7, 1-gpu 95.2 and 73.4, 2-gpu 95.3 and
73.3, 4-gpu 94.7 and 72.8, 8-gpu 94.6 and 73.2.

What the training fitness loses without each part:

      3.75  cpu_milli_after
      2.22  usable_gpu_milli_after
      2.22  starved_gpu_milli_after
      2.17  usable_gpu_milli_before
      2.17  starved_gpu_milli_more
      0.85  tightest_gpu_milli
      0.66  gpu_milli_spent
      0.66  usable_gpu_milli_taken
      0.60  gpu_steps
      0.57  gpu_milli_behind
      0.54  is_share
      0.54  lost_gpu_milli
      0.53  if left >= pod.gpu_milli
      0.46  gpu_milli_wanted
      0.10  if left >= SMALL_GPU_MILLI
      0.10  starved_gpu_milli_before
      0.04  gpu_weight
"""

# CPU milli that a pod usually takes with each GPU milli (tuned within 2 and 60).
CPUS_PER_GPU = 7.21
# GPU milli below which a free part of a GPU is of no use to other pods (tuned within 0 and
# 1000).
SMALL_GPU_MILLI = 470.0
# Nodes that lose about as much GPU are alike: a step is 509 / 4 GPU milli, an eighth of a GPU.
SCALE_GPU_MILLI = 509
STEPS = 4
# Thousandths of a GPU or of a CPU.
MILLI = 1000


def find_tightest_gpu_milli(pod, node):
    """Free part of the fullest GPU on which the pod fits."""
    found = 1000
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= pod.gpu_milli:
            found = min(found, left)
    return found


def sum_usable_gpu_milli(node):
    """Free parts of GPUs that are not too small."""
    found = 0
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        if left >= SMALL_GPU_MILLI:
            found += left
    return found


def starved_gpu_milli(usable_gpu_milli, cpu_milli):
    """Usable GPU that lacks CPU, if pods take what is usual."""
    return max(0, usable_gpu_milli - cpu_milli / CPUS_PER_GPU)


def score(pod, node):
    """Scores a pod on a node; the highest score wins."""
    # What the pod leaves behind on its GPU, and what of that is too small for others.
    tightest_gpu_milli = find_tightest_gpu_milli(pod, node)
    gpu_milli_behind = tightest_gpu_milli - pod.gpu_milli
    is_share = 0 < pod.gpu_milli < MILLI
    lost_gpu_milli = gpu_milli_behind if is_share and gpu_milli_behind < SMALL_GPU_MILLI else 0
    # Free parts of GPUs that are not too small, before and once the pod is here.
    gpu_milli_wanted = pod.gpu_count * pod.gpu_milli
    gpu_milli_spent = gpu_milli_wanted + lost_gpu_milli
    usable_gpu_milli_before = sum_usable_gpu_milli(node)
    usable_gpu_milli_taken = gpu_milli_spent if tightest_gpu_milli >= SMALL_GPU_MILLI else 0
    usable_gpu_milli_after = usable_gpu_milli_before - usable_gpu_milli_taken
    # Usable GPU that loses its CPU to the pod, less that without CPU that the pod takes.
    cpu_milli_after = node.cpu_milli_left - pod.cpu_milli
    starved_gpu_milli_before = starved_gpu_milli(usable_gpu_milli_before, node.cpu_milli_left)
    starved_gpu_milli_after = starved_gpu_milli(usable_gpu_milli_after, cpu_milli_after)
    starved_gpu_milli_more = starved_gpu_milli_after - starved_gpu_milli_before
    # GPU that this pod makes useless, in whole steps: the term that people wrote.
    gpu_steps = int(STEPS * ((starved_gpu_milli_more + lost_gpu_milli) / SCALE_GPU_MILLI))
    # What decides between nodes within one step: the term that the search added.
    gpu_weight = (starved_gpu_milli_more + gpu_milli_behind) / SCALE_GPU_MILLI
    return -gpu_weight - gpu_steps
