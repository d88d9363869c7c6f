/** The initiator's own memory that a request names: checked as its adapter would check it. */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { type WorkRequestRing, WrField } from '../../verbs/work-request-ring.ts';
import type { EmulatedContext } from './context.ts';
import { Mapping, Pieces } from './mapping.ts';
import type { EmulatedRegion } from './memory-region.ts';
import type { EmulatedProtectionDomain } from './protection-domain.ts';

export class LocalSide {
  readonly pieces: Pieces;
  readonly ringMapping: Mapping;
  readonly #context: EmulatedContext;
  readonly #pd: EmulatedProtectionDomain;
  readonly #ring: WorkRequestRing;
  #localRegion: EmulatedRegion | undefined;

  constructor(context: EmulatedContext, pd: EmulatedProtectionDomain, ring: WorkRequestRing) {
    this.#context = context;
    this.#pd = pd;
    this.#ring = ring;
    this.ringMapping = new Mapping(ring.buffer);
    this.pieces = new Pieces(Math.max(1, ring.maxSge), this.ringMapping);
  }

  /**
   * Resolves what the request gathers from or scatters to into `pieces`.
   * @param right what the regions must allow besides reading
   * @returns a `WcStatus`
   */
  find(w: number, right: number): number {
    const { pieces } = this;
    const ring = this.#ring;
    const { u32 } = ring;
    pieces.clear();
    const inline = u32[w + WrField.INLINE_LENGTH];
    if (inline > 0) {
      pieces.add(this.ringMapping, ring.inlineByte(w), inline);
      return WcStatus.SUCCESS;
    }
    const n = u32[w + WrField.NUM_SGE];
    for (let i = 0; i < n; i++) {
      const s = ring.sgeWords(w, i);
      const length = u32[s + 2];
      if (length === 0) continue;
      const region = this.#findRegion(u32[s + 3]);
      if (region === undefined || region.pd !== this.#pd || (region.access & right) !== right)
        return WcStatus.LOC_PROT_ERR;
      const { memory } = region;
      const address = ring.f64[s >>> 1];
      const at = address - region.address;
      const offset = address - memory.address;
      // The last condition fails for a buffer that was detached, whose length is 0.
      if (
        !(at >= 0 && length <= region.length && at <= region.length - length) ||
        offset + length > memory.mapping.u8.length
      ) {
        return WcStatus.LOC_PROT_ERR;
      }
      pieces.add(memory.mapping, offset, length);
    }
    return WcStatus.SUCCESS;
  }

  #findRegion(lkey: number): EmulatedRegion | undefined {
    let region = this.#localRegion;
    if (region !== undefined && region.lkey === lkey && region.live) return region;
    region = this.#context.region(lkey);
    if (region !== undefined) this.#localRegion = region;
    return region;
  }
}
