/** Memory of ranks that requests reach. */
import { ByRank } from './by-rank.ts';

/** Memory at a target: its part, or what is attached to a dynamic window. */
export interface RemoteRegion {
  readonly rkey: number;
  /** What is added to the places that requests name to make them addresses of the device. */
  readonly address: number;
}

/** The parts of all ranks of a window. */
export type Regions = Pick<ByRank<RemoteRegion>, 'of'>;

export function regionsBy(lookUp: (rank: number) => RemoteRegion): Regions {
  return new ByRank(lookUp);
}
