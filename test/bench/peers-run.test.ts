/** SUMMA, MG and CG in C, on the MPI libraries that are installed: they compile, and their results are right. */
import { describe, expect, it } from 'vitest';
import { CG_CLASSES, MG_CLASSES } from '../../bench/nas/classes.ts';
import { installed, PEERS, runPeer } from '../../bench/peers.ts';
import { ProgramError } from '../../bench/programs.ts';

describe('programs in C', () => {
  for (const peer of PEERS) {
    const there = installed(peer.compiler) && installed(peer.launcher);
    const needs = there ? '' : `: needs ${peer.packages}`;
    // They verify themselves: a wrong result is an exit code, which runPeer turns into an error.
    it.skipIf(!there)(`on ${peer.name} multiply matrices${needs}`, { timeout: 240_000 }, async () => {
      for (const [n, panel, what] of [
        ['61', '7', 'product'],
        ['64', '16', 'gets'],
      ] as const) {
        const { samples } = await runPeer(peer, 'summa', [n, panel, what, '2'], 2);
        expect(samples).toHaveLength(2);
      }
    });

    it.skipIf(!there)(`on ${peer.name} have NAS’ numbers in both styles${needs}`, { timeout: 480_000 }, async () => {
      for (const style of ['messages', 'blocking']) {
        const mg = (await runPeer(peer, 'mg', ['S', style, '1'], 2)) as unknown as { value: number };
        expect(Math.abs(mg.value / MG_CLASSES.S.norm - 1)).toBeLessThan(1e-11);
        const cg = (await runPeer(peer, 'cg', ['S', style, '1'], 2)) as unknown as { value: number };
        expect(Math.abs(cg.value / CG_CLASSES.S.zeta - 1)).toBeLessThan(1e-12);
      }
      await expect(runPeer(peer, 'mg', ['C', 'messages', '1'], 1)).rejects.toThrow(ProgramError);
    });
  }
});
