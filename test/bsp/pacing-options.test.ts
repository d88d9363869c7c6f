/** The option `pacing` of BSP computations: what is refused, and that all ranks learn why. */
import { type BspOptions, begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

describe('what is refused', () => {
  const refused = async (options: BspOptions | ((rank: number) => BspOptions), pattern: RegExp) => {
    const said = await runTasks(
      3,
      async (world) => {
        const given = typeof options === 'function' ? options(world.rank) : options;
        try {
          await begin(world, { delivery: 'packed', ...given });
        } catch (error) {
          const { code, message } = error as Error & { code: string };
          return `${code}: ${message}`;
        }
        return 'nothing';
      },
      { fabric: 'infinihost-64', seed: 1 },
    );
    for (const one of said) expect(one).toMatch(pattern);
  };

  test.each<[unknown, RegExp]>([
    ['slot', /^ERR_ARG: bsp\.begin: pacing: unknown name "slot"; did you mean "slots"\?/],
    [7, /^ERR_ARG: bsp\.begin: pacing must be 'none', 'slots', 'auto' or \{ slot, Q, packet \}, not 7/],
    [null, /^ERR_ARG: .*not null/],
    [{}, /^ERR_ARG: bsp\.begin: pacing: slot must be a number of microseconds, not undefined/],
    [{ slot: -1 }, /^ERR_ARG: bsp\.begin: pacing: slot must be from 0 to 1000000000 microseconds, not -1/],
    [{ slot: Number.NaN }, /^ERR_ARG: .*slot must be from 0/],
    [{ slot: 1, Q: 0 }, /^ERR_ARG: .*Q must be a whole number from 1 to 2147483647 slots, or 'senders', not 0/],
    [{ slot: 1, Q: 1.5 }, /^ERR_ARG: .*Q must be a whole number/],
    [{ slot: 1, Q: 'all' }, /^ERR_ARG: .*Q must be a number of slots, or 'senders', not "all"/],
    [{ slot: 1, packet: 63 }, /^ERR_ARG: .*packet must be a whole number from 64 to 2048 bytes here, not 63/],
    [{ slot: 1, packet: 2049 }, /^ERR_ARG: .*packet must be a whole number from 64 to 2048 bytes here, not 2049/],
    [{ slot: 1, q: 2 }, /^ERR_ARG: bsp\.begin: pacing: unknown name "q"/],
  ])('%o', (pacing, pattern) => refused({ pacing: pacing as never }, pattern));

  test.each(['auto', 'zero-copy'] as const)('with delivery: %s', (delivery) =>
    refused(
      { delivery, pacing: 'auto' },
      /^ERR_ARG: bsp\.begin: pacing is for .* delivery: 'packed' or 'datagrams', and not of '/,
    ),
  );

  test('where ranks differ', async () => {
    await refused(
      (rank) => ({ pacing: rank === 1 ? 'auto' : 'none' }),
      /^ERR_ARG: bsp\.begin: all ranks .* gave pacing '(auto|none)', this rank '(auto|none)'/,
    );
    await refused(
      (rank) => ({ pacing: rank === 2 ? { slot: 5 } : 'slots' }),
      /^ERR_ARG: .* gave pacing '(slots|\{ slot \})', this rank/,
    );
    const numbers = [{ slot: 5 }, { slot: 5, Q: 2 }] as const;
    await refused(
      (rank) => ({ pacing: numbers[rank === 0 ? 1 : 0] }),
      /^ERR_ARG: .* gave pacing with Q (2|senders), this rank (2|senders)/,
    );
    await refused(
      (rank) => ({ delivery: rank === 0 ? 'auto' : 'packed' }),
      /^ERR_ARG: .* gave delivery '(auto|packed)', this rank '(auto|packed)'/,
    );
  });
});
