/**
 * The BSP parameters of a machine, as bsp_bench measures them: see src/bsp/model/probe.ts.
 *
 *   onesided run -n 2 build/programs/bench/ranks/bsp-probe.js -- [--relation full|sparse] [--grain 1] [--most 1024]
 *     [--mflops 0] [--delivery auto|shared|packed] [--headers compressed|plain] [--json FILE] [--quiet]
 *
 * `--grain`: words of a put; `--most`: words that a process sends at most; `--mflops`: the speed of a processor, if it
 * is not to be measured; on modelled fabrics 1000 by default.
 */
import { type BspOptions, begin } from 'onesided/bsp';
import { type Probed, type ProbeOptions, probe } from 'onesided/bsp/model';
import { program } from '../patterns/program.ts';

interface Words {
  readonly relation: 'full' | 'sparse';
  readonly delivery: 'auto' | 'shared' | 'packed';
  readonly headers: 'compressed' | 'plain';
}

interface Options {
  readonly bsp: BspOptions;
  readonly probe: ProbeOptions;
}

await program(
  {
    numbers: { grain: [1, 1, 1e6], most: [1024, 1, 1e7], mflops: [0, 0, 1e6] },
    words: { relation: ['full', 'sparse'], delivery: ['auto', 'shared', 'packed'], headers: ['compressed', 'plain'] },
    hints: [],
  },
  ({ number: { grain, most, mflops }, word }): Options => {
    const { relation, delivery, headers } = word as unknown as Words;
    return {
      bsp: { headers, ...(delivery === 'auto' ? {} : { delivery }) },
      probe: { relation, grain, most: Math.max(most, grain), ...(mflops > 0 && { mflops }) },
    };
  },
  async (world, options, { mflops }): Promise<Probed & { readonly errors: number }> => {
    const bsp = await begin(world, options.bsp);
    const probed = await probe(bsp, { ...(mflops !== undefined && { mflops }), ...options.probe });
    await bsp.end();
    return { ...probed, errors: 0 };
  },
  ({ machine: { s, p, l, g }, microseconds, residual }) =>
    `p ${p}, r ${s.toFixed(0)} Mflop/s, g ${g.toFixed(1)} flops a word, l ${l.toFixed(0)} flops; ` +
    `g ${microseconds.g.toFixed(4)} µs a word, l ${microseconds.l.toFixed(2)} µs (residual ${residual.toFixed(2)} µs)`,
);
