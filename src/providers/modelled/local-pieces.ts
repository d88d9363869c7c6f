/** Where the data lie of the request that a device of this thread is looking at, and copying from and to that place. */
import { copyBytes, Mapping, Pieces } from '../core/mapped-memory.ts';

const filler = new Mapping(new ArrayBuffer(0));

/** What the request gathers from or scatters to. */
export const local = new Pieces(1024, filler);
/** Where the receive puts a message. */
export const scatter = new Pieces(1024, filler);

/** Copies what `local` names, one piece after the other. */
export function gather(to: Mapping, at: number): void {
  let end = at;
  for (let i = 0; i < local.count; i++) {
    copyBytes(to, end, local.mappings[i], local.offsets[i], local.lengths[i]);
    end += local.lengths[i];
  }
}

/** Copies bytes to what `local` names. */
export function spread(from: Mapping): void {
  let at = 0;
  for (let i = 0; i < local.count; i++) {
    copyBytes(local.mappings[i], local.offsets[i], from, at, local.lengths[i]);
    at += local.lengths[i];
  }
}
