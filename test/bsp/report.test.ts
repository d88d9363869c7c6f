/** What `Bsp.report` says of supersteps, against what they were. */
import { begin } from 'onesided/bsp';
import { type BspReport, probe, reportPicture, reportTable } from 'onesided/bsp/model';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const FABRIC = { fabric: 'infinihost-64', seed: 1 } as const;
const SIZE = 4;

/** Three supersteps: a registration; puts of 300 words by process 1, gets by process 2; computing at process 3. */
async function reported(predicts: boolean): Promise<BspReport> {
  const [report] = await runTasks(
    SIZE,
    async (world) => {
      const bsp = await begin(world, { report: true });
      const x = new Float64Array(400);
      bsp.pushReg(x);
      await bsp.sync();
      if (bsp.pid === 1) {
        bsp.put(0, new Float64Array(300), x);
        bsp.put(1, new Float64Array(50), x); // to itself: not in the relation
      }
      if (bsp.pid === 2) bsp.get(3, x, 0, new Float64Array(100));
      await bsp.sync();
      await bsp.comm.compute(bsp.pid === 3 ? 500 : 100);
      bsp.setTagsize(8);
      await bsp.sync();
      bsp.send(0, Float64Array.of(1), new Float64Array(9));
      await bsp.sync();
      const machine = predicts ? (await probe(bsp, { mflops: 1000, steps: 3 })).machine : undefined;
      const found = await bsp.report(machine);
      await bsp.end();
      return found;
    },
    FABRIC,
  );
  return report;
}

describe('a report', () => {
  test('has the work, the relation and the time of each superstep', async () => {
    const { supersteps, processes, machine } = await reported(false);
    expect([processes, machine]).toEqual([SIZE, undefined]);
    expect(supersteps.map(({ superstep }) => superstep)).toEqual([0, 1, 2, 3]);
    // Process 0 receives 300 words; later, three messages of ten words from the others.
    expect(supersteps.map(({ h }) => h)).toEqual([0, 300, 0, 30]);
    expect(supersteps[2]).toMatchObject({ slowest: 3 });
    expect(supersteps[2].work).toBeCloseTo(500, 0);
    expect(supersteps[2].imbalance).toBeCloseTo(500 / 200, 1);
    for (const { work, measured, predicted } of supersteps) {
      expect(measured).toBeGreaterThan(work);
      expect(predicted).toBeUndefined();
    }
  });

  test('with a machine, has what the model says', async () => {
    const { supersteps, machine } = await reported(true);
    const { s, g, l } = machine!;
    for (const { work, h, predicted } of supersteps) expect(predicted).toBeCloseTo(work + (h * g + l) / s, 9);
    // Those of the probe are not in it.
    expect(supersteps).toHaveLength(4);
  });

  test('can be read as a table and as a picture', async () => {
    const report = await reported(true);
    const lines = reportTable(report).split('\n');
    expect(lines[0]).toMatch(/superstep +work µs +h words +measured µs +predicted µs +error +slowest +imbalance/);
    expect(lines).toHaveLength(report.supersteps.length + 2);
    expect(lines.at(-1)).toMatch(/supersteps of 4 processes: \d+ µs measured, \d+ predicted \(-?\d+ %\)/);
    const svg = reportPicture(report);
    expect(svg.match(/<g><title>/g)).toHaveLength(report.supersteps.length);
    expect(svg).toContain('superstep 2: ');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    expect(reportPicture({ processes: 1, supersteps: [] })).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('is refused where nothing was kept', async () => {
    await runTasks(
      1,
      async (world) => {
        const bsp = await begin(world);
        await expect(bsp.report()).rejects.toMatchObject({ code: 'ERR_ARG', message: /report: true/ });
        await expect(begin(world, { report: 1 as never })).rejects.toThrow(TypeError);
        await bsp.end();
      },
      FABRIC,
    );
  });
});
