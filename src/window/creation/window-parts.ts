/** What a window consists of once its ranks have made it together. */
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import type { CopyKernels } from '../../datatype/copy.ts';
import { RmaError } from '../../errors.ts';
import type { GeneralActiveTarget } from '../../sync/pscw/pscw-scheme.ts';
import type { NoncontiguousTransfers } from '../../transfer/layouts/layout-moves.ts';
import type { BulkKernels } from '../../transfer/loads/accumulate.ts';
import type { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Stripes } from '../../transfer/loads/stripes.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { RequestUpdates } from '../../transfer/requests/request-updates.ts';
import type { HeldOperations } from '../../transfer/schedule/held-operations.ts';
import type { UserMemory } from '../../transfer/served/user-memory.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import type { Attachments } from '../attached/attachments.ts';
import type { ServedUpdates } from '../path/served-path.ts';
import type { Signals } from '../path/signals.ts';
import type { Targets } from '../path/target.ts';
import type { Schemes } from './schemes.ts';
import type { Hints, WindowInfo } from './window-info.ts';

/** Options of the calls that create a window. `signal` and `timeout` limit the wait for the other ranks. */
export interface WindowOptions extends WaitOptions {
  /** Hints for the window; all ranks must pass the same hints. */
  readonly info?: WindowInfo;
  /**
   * The displacement unit of this rank's part in bytes; default: the element size. With 0, every displacement is the
   * beginning of the part.
   */
  readonly dispUnit?: number;
  /** The name of the window in error messages; all ranks should pass the same name. */
  readonly name?: string;
}

/** How the memory of a window was provided (`MPI_WIN_CREATE_FLAVOR`). */
export type Flavor = 'create' | 'allocate' | 'shared' | 'dynamic';

/** Everything that making a window has found out. */
export interface WindowParts extends Omit<Schemes, 'release'> {
  readonly comm: Communicator;
  readonly name: string;
  readonly flavor: Flavor;
  /** The library's own view of this rank's part. */
  readonly local: TypedArray;
  /** The array that the program has made the part of, if it has. */
  readonly given: TypedArray | undefined;
  readonly dispUnit: number;
  readonly hints: Hints;
  readonly targets: Targets;
  /** The counts that `putNotify` raises. */
  readonly signals: Signals;
  /** Start, complete, post and wait. */
  readonly general: GeneralActiveTarget;
  /** Whether this rank loads and stores the part of one on its host, although others are behind devices. */
  isNeighbour(rank: number): boolean;
  /** Maps a target's memory. */
  map(rank: number): RemotePart;
  /** The locks of a rank's part for accumulates; `undefined` where accumulates are requests. */
  makeStripes(rank: number): Stripes | undefined;
  /** Work requests of this window, whatever they are for. */
  readonly wire: RequestTransfer | undefined;
  /** The same if they move the bytes of put and get; absent where those are loads and stores. */
  readonly requests: RequestTransfer | undefined;
  /** Puts and gets that wait to be posted as requests; absent where each is posted by its call. */
  readonly held: HeldOperations | undefined;
  /** Accumulates by requests; absent where the processors do them. */
  readonly updates: RequestUpdates | undefined;
  /** Carries out updates at their target, with the hint `update`; absent where updates do not go that way. */
  readonly served: ServedUpdates | undefined;
  /** What moves layouts of several pieces, with the hint `noncontiguous`; absent where each piece is a request. */
  readonly noncontiguous: NoncontiguousTransfers | undefined;
  /** What is attached where, in a dynamic window: displacements are addresses there. */
  readonly attachments: Attachments | undefined;
  /** The way to ranks whose memory is not the library's; it comes before the others. Absent if there are none. */
  readonly userMemory: UserMemory | undefined;
  readonly kernels: (BulkKernels & CopyKernels) | undefined;
  /** Names the window in traces, the same at all ranks. */
  readonly trace: string;
  /** Which window of its communicator it is, from 1: the same at all ranks. */
  readonly number: number;
  /** Gives memory, regions and mappings back. */
  release(): void;
}

/** For the rank itself, once its buffer is detached. */
export function goneError(window: string): RmaError {
  return new RmaError(
    'ERR_BUFFER',
    `${window}: this rank's part is detached, because its ArrayBuffer was transferred; ` +
      'other ranks still access the original memory',
  );
}
