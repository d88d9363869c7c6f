/**
 * `onesided`: windows, epochs and one-sided communication between ranks.
 *
 * Modelled fabrics are behind `onesided/fabrics`: a program that does not simulate does not load the simulator.
 */
import { Communicator } from './comm/communicator.ts';
import { Group } from './comm/group.ts';
import { init } from './comm/init.ts';
import { Datatype } from './datatype/datatype.ts';
import { publicCalls } from './program-line.ts';
import { Aggregate } from './window/aggregate.ts';
import { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './window/epoch-objects.ts';
import { Request } from './window/request.ts';
import { Window } from './window/window.ts';

export { Communicator } from './comm/communicator.ts';
export { Group, Rank } from './comm/group.ts';
export { type InitOptions, init } from './comm/init.ts';
export type { WaitOptions } from './comm/operation.ts';
export type { ReceiveOptions, SendOptions } from './comm/point-to-point.ts';
export type { RawMemory, TypedArray, TypedArrayConstructor } from './datatype/base.ts';
export { Datatype, type Fields, type RecordOf } from './datatype/datatype.ts';
export type { Distribution } from './datatype/distribution.ts';
export type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from './datatype/elements.ts';
export type { Order } from './datatype/flatten.ts';
export { Op, type OpKind } from './datatype/op.ts';
export type { FetchLayout, Layout, TransferLayout } from './datatype/sides.ts';
export { type ErrorCode, RankFailedError, RmaError } from './errors.ts';
export type { FenceSchemeName } from './sync/fence/kinds.ts';
export type { FenceStatistics } from './sync/fence/scheme.ts';
export type { LockSchemeName } from './sync/lock/kinds.ts';
export { Lock, type LockStatistics } from './sync/lock/scheme.ts';
export type { LayoutStatistics } from './transfer/noncontiguous/statistics.ts';
export type { Aggregate, AggregateOptions } from './window/aggregate.ts';
export { Assert } from './window/assert.ts';
export type { Flavor, WindowOptions } from './window/creation/parts.ts';
export type { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './window/epoch-objects.ts';
export type { WindowInfo, WindowInfoInForce } from './window/info.ts';
export type { ProgressBy, WindowCall } from './window/progress.ts';
export { Request } from './window/request.ts';
export { Window, type WindowStatistics } from './window/window.ts';

publicCalls(init, Communicator, Datatype, Group, Request, Window);
publicCalls(Aggregate, FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch);
