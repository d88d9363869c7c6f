/**
 * `onesided`: windows, epochs and one-sided communication between ranks.
 *
 * Modelled fabrics are behind `onesided/fabrics`: a program that does not simulate does not load the simulator.
 */
import { Communicator } from './collective/communicator.ts';
import { Group } from './collective/group.ts';
import { Datatype } from './datatype/datatype.ts';
import { publicCalls } from './program-line.ts';
import { init } from './start/init.ts';
import { Aggregate } from './window/calls/aggregate-handle.ts';
import { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './window/calls/epoch-objects.ts';
import { Window } from './window/calls/window.ts';
import { Request } from './window/calls/window-request.ts';

export type { BarrierKind, BarrierOptions } from './collective/barrier-kinds.ts';
export { Communicator, type CommunicatorStatistics } from './collective/communicator.ts';
export { Group, Rank } from './collective/group.ts';
export type { ReceiveOptions, SendOptions } from './collective/point-to-point.ts';
export type { RawMemory, TypedArray, TypedArrayConstructor } from './datatype/base-types.ts';
export { Datatype, type Fields, type RecordOf } from './datatype/datatype.ts';
export type { Distribution } from './datatype/distribution.ts';
export type { ElementsOf, OpOn, OriginOf, ResultOf, SameElements, Swappable } from './datatype/element-types.ts';
export type { Order } from './datatype/flatten.ts';
export { Op, type OpKind } from './datatype/op.ts';
export type { FetchLayout, Layout, TransferLayout } from './datatype/sides.ts';
export { type ErrorCode, RankFailedError, RmaError } from './errors.ts';
export { type InitOptions, init } from './start/init.ts';
export type { FenceSchemeName } from './sync/fence/fence-kinds.ts';
export type { FenceStatistics } from './sync/fence/fence-scheme.ts';
export type { LockSchemeName } from './sync/lock/lock-kinds.ts';
export { Lock, type LockStatistics } from './sync/lock/lock-scheme.ts';
export type { LayoutStatistics } from './transfer/requests/layout-statistics.ts';
export type { WaitOptions } from './wait/operation.ts';
export type { Aggregate, AggregateOptions } from './window/calls/aggregate-handle.ts';
export type { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './window/calls/epoch-objects.ts';
export { Window, type WindowStatistics } from './window/calls/window.ts';
export { Request } from './window/calls/window-request.ts';
export type { WindowInfo, WindowInfoInForce } from './window/creation/window-info.ts';
export type { Flavor, WindowOptions } from './window/creation/window-parts.ts';
export { Assert } from './window/epochs/assertions.ts';
export type { ProgressBy, WindowCall } from './window/epochs/progress-makers.ts';

publicCalls(init, Communicator, Datatype, Group, Request, Window);
publicCalls(Aggregate, FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch);
