"""Trial by fire: faults drawn by seeds, all endings on all kinds of sites, and the GPU. By hand: `make trial`."""
