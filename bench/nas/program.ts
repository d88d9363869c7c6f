/** MG and CG as programs of ranks: their command line. */
import type { Communicator } from 'onesided';
import type { Machine } from '../patterns/machine.ts';
import { program } from '../patterns/program.ts';
import { CLASSES, type ClassName } from './classes.ts';
import { STYLE_NAMES, type StyleName } from './links.ts';
import { KERNEL_NAMES, type KernelName, type NasOptions } from './options.ts';

export function nasProgram<R extends { readonly errors: number }>(
  main: (world: Communicator, options: NasOptions, machine: Machine) => Promise<R>,
  describe: (result: R) => string,
): Promise<void> {
  return program(
    {
      numbers: { gflops: [1, 1, 1e6], samples: [1, 1, 1000], 'warm-ups': [0, 0, 1000] },
      words: { class: CLASSES, style: STYLE_NAMES, kernel: KERNEL_NAMES },
      hints: [],
    },
    ({ number, word, info }) => ({
      class: word.class as ClassName,
      style: word.style as StyleName,
      kernel: word.kernel as KernelName,
      ...{ gflops: number.gflops, samples: number.samples, warmUps: number['warm-ups'] },
      info,
      arithmetic: true,
    }),
    main,
    describe,
  );
}
