/**
 * BSPlib on processes or threads: `--delivery=`, `--headers=`, `--counts=`, `--barrier=`, `--barrierAlgorithm=`,
 * `--nackAfter=`, `--pacing=` (JSON), `--seed=`, `--programs=`.
 */
import type { BspOptions, PacingOption } from 'onesided/bsp';
import { bspCases } from './support/bsp-cases.ts';
import { argument, runCases } from './support/cases.ts';

const given = Object.fromEntries(
  ['delivery', 'headers', 'counts', 'barrier', 'barrierAlgorithm'].flatMap((name) => {
    const value = argument(name);
    return value === undefined ? [] : [[name, value]];
  }),
) as BspOptions;
const nackAfter = argument('nackAfter');
const pacing = argument('pacing');

await runCases(
  bspCases({
    ...given,
    ...(nackAfter !== undefined && { nackAfter: Number(nackAfter) }),
    ...(pacing !== undefined && { pacing: JSON.parse(pacing) as PacingOption }),
    seed: Number(argument('seed') ?? 1),
    programs: Number(argument('programs') ?? 10),
    blocks: true,
  }),
);
