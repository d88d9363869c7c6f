/**
 * Which states a queue pair can move between and what each move takes, for all providers: what `ib_modify_qp_is_ok` is
 * for Linux' drivers. An attribute that a move does not take is ignored.
 */
import { RmaError, show } from '../../errors.ts';
import { ALL_ACCESS, checkInteger } from '../../verbs/checks.ts';
import { MOST_QKEY } from '../../verbs/datagram-ring.ts';
import { type QpAttributes, QpState } from '../../verbs/queue-pair.ts';
import type { QpAddress } from '../../verbs/queue-pair-address.ts';

/** The value of `rnrRetry` that means: for ever. */
export const FOR_EVER = 7;
/** The longest RNR timer of InfiniBand (specification, table 45). */
export const MAX_RNR_TIMER_MS = 655.36;

/** A move of a queue pair with all its attributes, checked, with the defaults of what was left out. */
export interface Move {
  readonly from: number;
  readonly to: number;
  /** `undefined`: as before, or none in INIT. */
  readonly access: number | undefined;
  /** There in a move to INIT of a queue pair of type UD. */
  readonly qkey: number;
  /** There in a move to RTR of one of type RC. */
  readonly dest: QpAddress | undefined;
  readonly maxDestRdAtomic: number;
  readonly minRnrTimerMs: number;
  readonly rnrRetry: number;
  readonly retryCount: number;
  readonly maxRdAtomic: number;
  /** The numbers of the first packets: `undefined` means the provider's choice. */
  readonly rqPsn: number | undefined;
  readonly sqPsn: number | undefined;
}

/** What limits the attributes on a device. */
export interface MoveLimits {
  /** Addresses in the fabric. */
  readonly members: number;
  readonly maxQpInitRdAtom: number;
  /** Whether what is sent has packet numbers; without, they are ignored. */
  readonly packets: boolean;
  /** The queue pair is of type UD: its peers are named by each request. */
  readonly datagrams: boolean;
}

type Check = (call: string, move: Move, limits: MoveLimits) => void;

const access: Check = (call, move) => {
  if (move.access !== undefined) checkInteger(call, 'access', move.access, 0, ALL_ACCESS);
};
const qkey: Check = (call, move, { datagrams }) => {
  if (datagrams) checkInteger(call, 'qkey', move.qkey, 0, MOST_QKEY);
};
const dest: Check = (call, move, { members, datagrams }) => {
  if (datagrams) return;
  if (move.dest === undefined) {
    throw new RmaError('ERR_VERBS', `${call}: RTR needs dest, the address of the remote queue pair (EINVAL)`);
  }
  checkInteger(call, 'dest.member', move.dest.member, 0, members - 1);
  checkInteger(call, 'dest.qpNumber', move.dest.qpNumber, 1, 2 ** 24 - 1);
};
const minRnrTimerMs: Check = (call, move) => {
  const timer = move.minRnrTimerMs;
  if (timer >= 0 && timer <= MAX_RNR_TIMER_MS) return;
  throw new RmaError(
    'ERR_VERBS',
    `${call}: minRnrTimerMs must be from 0 to ${MAX_RNR_TIMER_MS}, not ${show(timer)} (EINVAL)`,
  );
};
const reads =
  (name: 'maxDestRdAtomic' | 'maxRdAtomic'): Check =>
  (call, move, { maxQpInitRdAtom }) =>
    checkInteger(call, name, move[name], 0, maxQpInitRdAtom);
const retries =
  (name: 'rnrRetry' | 'retryCount'): Check =>
  (call, move) =>
    checkInteger(call, name, move[name], 0, 7);
const packet =
  (name: 'rqPsn' | 'sqPsn'): Check =>
  (call, move, { packets }) => {
    const number = move[name];
    if (packets && number !== undefined) checkInteger(call, name, number, 0, 2 ** 24 - 1);
  };

const { RESET, INIT, RTR, RTS, SQD, SQE, ERR } = QpState;
const EVERY = [RESET, INIT, RTR, RTS, SQD, SQE, ERR];

/** By the state to move to: from which states, and which attributes are looked at. */
const MOVES: Readonly<Record<number, { readonly from: readonly number[]; readonly takes: readonly Check[] }>> = {
  [RESET]: { from: EVERY, takes: [] },
  [INIT]: { from: [RESET, INIT], takes: [access, qkey] },
  [RTR]: { from: [INIT], takes: [dest, reads('maxDestRdAtomic'), minRnrTimerMs, access, packet('rqPsn')] },
  [RTS]: {
    from: [RTR, RTS],
    takes: [retries('rnrRetry'), retries('retryCount'), reads('maxRdAtomic'), access, packet('sqPsn')],
  },
  [ERR]: { from: EVERY, takes: [] },
};

/**
 * The move that `attributes` ask of a queue pair. Errors: `ERR_VERBS` for a move that does not exist, and for
 * attributes out of range.
 */
export function checkMove(call: string, from: number, attributes: QpAttributes, limits: MoveLimits): Move {
  const { state: to, minRnrTimerMs = 0.01, rnrRetry = FOR_EVER, retryCount = 7 } = attributes;
  const { maxDestRdAtomic = limits.maxQpInitRdAtom, maxRdAtomic = limits.maxQpInitRdAtom } = attributes;
  const { access, dest, rqPsn, sqPsn, qkey = Number.NaN } = attributes;
  const rule = MOVES[to];
  if (!rule?.from.includes(from)) {
    throw new RmaError(
      'ERR_VERBS',
      `${call}: cannot move from ${stateName(from)} to ${stateName(to)}; ` +
        'the order is RESET, INIT, RTR, RTS, and every state can move to ERR and RESET (EINVAL)',
    );
  }
  const move: Move = {
    ...{
      from,
      to,
      access,
      qkey,
      dest,
      maxDestRdAtomic,
      minRnrTimerMs,
      rnrRetry,
      retryCount,
      maxRdAtomic,
      rqPsn,
      sqPsn,
    },
  };
  for (const check of rule.takes) check(call, move, limits);
  return move;
}

export function stateName(state: number): string {
  for (const [name, value] of Object.entries(QpState)) if (value === state) return name;
  return show(state);
}
