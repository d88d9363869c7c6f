/** Rows of bulk-synchronous programs on real ranks (real.ts). */
import { missingPrimitives, SCHEMES } from './chapter-bsp.ts';
import { forEach } from './figure.ts';
import { onRanks, processes, programOn, RANKS, type RealRow, show } from './on-ranks.ts';

/** Programs of figure B7, each with its small and its large data set. */
const PROGRAMS = [
  ['inner product, n = 100000', 'bsp-inner-product', '--n 100000 --samples 500'],
  ['inner product, n = 1000000', 'bsp-inner-product', '--n 1000000 --samples 200'],
  ['LU, n = 256', 'bsp-lu', '--n 256 --samples 10'],
  ['LU, n = 1024', 'bsp-lu', '--n 1024 --samples 3'],
  ['FFT, n = 2^14', 'bsp-fft', '--log2n 14 --samples 300'],
  ['FFT, n = 2^18', 'bsp-fft', '--log2n 18 --samples 50'],
] as const;

const minus = (number: string): string => number.replace('-', '−');
const signed = (value: number): string => minus(show(value));
const whole = (value: number): string => minus(value.toFixed(0));

interface Found {
  readonly microseconds: number;
  readonly errors: number;
}

interface Predicted extends Found {
  readonly predicted: number;
}

export const BSP_ROWS: Readonly<Record<string, () => Promise<RealRow>>> = {
  B1: async () => {
    const sizes = [0, 8192, 32_768];
    const kinds = ['full', 'sparse'] as const;
    const [full, sparse] = await forEach(kinds, async (kind) => {
      const options = { options: SCHEMES[0].options, kind, grain: 64, warm: 100, repetitions: 400, sizes };
      const all = await onRanks(4, 'relations', options);
      return sizes.map((_, i) => Math.max(...all.map((times) => times[i])));
    });
    const word = ([, some, most]: readonly number[]): number => (1000 * (most - some)) / (sizes[2] - sizes[1]);
    const missing = missingPrimitives();
    return {
      measured:
        `${processes(4)}, baseline, µs of a superstep with ${sizes.join(', ')} words: ` +
        `with all others ${full.map(show).join(', ')}; with the neighbour ${sparse.map(show).join(', ')}; ` +
        `a further word costs ${signed(word(full))} and ${signed(word(sparse))} ns; ` +
        `primitives that are not there: ${missing.length === 0 ? 'none' : missing.join(', ')}`,
      expected:
        'a further word costs as much in a relation with all others as in one with the neighbour, within a tenth; ' +
        'all primitives are there',
      holds: missing.length === 0 && Math.abs(word(full) / word(sparse) - 1) <= 0.1,
      ...(RANKS.length === 1 ? { why: 'four processes take turns on two cores' } : {}),
    };
  },
  B7: async () => {
    const found = await forEach(PROGRAMS, async ([name, program, args]) => {
      const [one, ...more] = await forEach([1, ...RANKS], (ranks) => programOn<Found>(program, ranks, args));
      const errors = more.reduce((sum, { errors }) => sum + errors, one.errors);
      return { name, speedUps: more.map(({ microseconds }) => one.microseconds / microseconds), errors };
    });
    const errors = found.reduce((sum, one) => sum + one.errors, 0);
    const isBetter = (large: number): boolean =>
      found[large].speedUps.every((speedUp, i) => speedUp > Math.max(1, found[large - 1].speedUps[i]));
    return {
      measured:
        `speed-ups on ${RANKS.join(', ')} processes: ` +
        `${found.map(({ name, speedUps }) => `${speedUps.map(show).join(', ')} (${name})`).join('; ')}; ` +
        `${errors} results are wrong`,
      expected: 'each large data set speeds up by more than 1, and by more than its small one; no result is wrong',
      holds: errors === 0 && [1, 3, 5].every(isBetter),
    };
  },
  M1: async () => {
    const all = await forEach([256, 512, 1024], async (n) => {
      const args = `--n ${n} --iterations 200 --parts strips`;
      const found = await forEach(RANKS, (ranks) => programOn<Predicted>('bsp-jacobi', ranks, args));
      return {
        n,
        off: found.map((one) => 100 * (one.predicted / one.microseconds - 1)),
        wrong: found.reduce((sum, one) => sum + one.errors, 0),
      };
    });
    const wrong = all.reduce((sum, one) => sum + one.wrong, 0);
    return {
      measured:
        `${RANKS.join(', ')} processes, strips, predictions are off by ` +
        `${all.map(({ n, off }) => `${off.map(whole).join(', ')} % (n = ${n})`).join('; ')}; ` +
        `${wrong} elements are wrong`,
      expected: 'no prediction is off by more than 15 %; no element wrong',
      holds: wrong === 0 && all.every(({ off }) => off.every((error) => Math.abs(error) <= 15)),
    };
  },
};
