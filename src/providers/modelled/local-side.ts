/** The sender's own memory that a request names: checked as its adapter would check it. */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { type WorkRequestRing, WrField } from '../../verbs/work-request-ring.ts';
import { Mapping } from '../emulator/mapping.ts';
import type { ModelledContext } from './context.ts';
import type { ModelledProtectionDomain } from './memory.ts';
import { local } from './pieces.ts';

export class LocalSide {
  readonly #context: ModelledContext;
  readonly #pd: ModelledProtectionDomain;
  readonly #ring: WorkRequestRing;
  #ringMapping: Mapping | undefined;

  constructor(context: ModelledContext, pd: ModelledProtectionDomain, ring: WorkRequestRing) {
    this.#context = context;
    this.#pd = pd;
    this.#ring = ring;
  }

  /**
   * Resolves what the request gathers from or scatters to into `local`.
   * @param right what the regions must allow besides reading
   * @returns a `WcStatus`
   */
  find(w: number, right: number): number {
    const ring = this.#ring;
    const { u32 } = ring;
    local.clear();
    const inline = u32[w + WrField.INLINE_LENGTH];
    if (inline > 0) {
      if (this.#ringMapping?.buffer !== ring.buffer) this.#ringMapping = new Mapping(ring.buffer);
      local.add(this.#ringMapping, ring.inlineByte(w), inline);
      return WcStatus.SUCCESS;
    }
    const n = u32[w + WrField.NUM_SGE];
    for (let i = 0; i < n; i++) {
      const s = ring.sgeWords(w, i);
      const length = u32[s + 2];
      if (length === 0) continue;
      const address = ring.f64[s >>> 1];
      const region = this.#context.localRegion(u32[s + 3], this.#pd, right, address, length);
      if (region === undefined) return WcStatus.LOC_PROT_ERR;
      local.add(region.memory.mapping, address - region.memory.address, length);
    }
    return WcStatus.SUCCESS;
  }
}
