/** MPI's predefined reduction operations (MPI 4.1, section 6.9.2) and those only RMA has (12.3.4). */
import { OpCode } from './codes.ts';

/** A predefined operation; there are no others: RMA does not allow user-defined ones (MPI 4.1, 12.3.4). */
class PredefinedOp {
  /** Only what the constructor has made has it: not a copy, not a proxy, and asking for it runs no code of the caller's. */
  readonly #made = true;
  readonly name: string;
  readonly code: number;

  constructor(name: string, code: number) {
    this.name = name;
    this.code = code;
    Object.freeze(this);
  }

  static is(value: unknown): value is PredefinedOp {
    return typeof value === 'object' && value !== null && #made in value;
  }

  toString(): string {
    return `Op.${this.name}`;
  }
}

export type Op = PredefinedOp;

export const isOp = PredefinedOp.is;

/**
 * `SUM` and `PROD` wrap around on integers. `MIN` and `MAX` of floating-point numbers are NaN if either operand is. `LAND`, `LOR`,
 * `LXOR` treat non-zero as true and give 1 or 0. `BAND`, `BOR`, `BXOR` are for integers and bytes. `REPLACE` stores the origin's
 * value (an atomic put), `NO_OP` leaves the target as it is (an atomic get).
 */
export const Op = Object.freeze({
  SUM: new PredefinedOp('SUM', OpCode.SUM),
  PROD: new PredefinedOp('PROD', OpCode.PROD),
  MIN: new PredefinedOp('MIN', OpCode.MIN),
  MAX: new PredefinedOp('MAX', OpCode.MAX),
  LAND: new PredefinedOp('LAND', OpCode.LAND),
  LOR: new PredefinedOp('LOR', OpCode.LOR),
  LXOR: new PredefinedOp('LXOR', OpCode.LXOR),
  BAND: new PredefinedOp('BAND', OpCode.BAND),
  BOR: new PredefinedOp('BOR', OpCode.BOR),
  BXOR: new PredefinedOp('BXOR', OpCode.BXOR),
  REPLACE: new PredefinedOp('REPLACE', OpCode.REPLACE),
  NO_OP: new PredefinedOp('NO_OP', OpCode.NO_OP),
  MINLOC: new PredefinedOp('MINLOC', OpCode.MINLOC),
  MAXLOC: new PredefinedOp('MAXLOC', OpCode.MAXLOC),
});
