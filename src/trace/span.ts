export type Category = 'epoch' | 'call' | 'wait' | 'operation' | 'message' | 'memory' | 'superstep';

export interface Span {
  readonly rank: number;
  readonly category: Category;
  readonly name: string;
  /** Nanoseconds since the first event of the trace. */
  readonly start: number;
  end: number;
  readonly args: Record<string, string | number | boolean>;
  /** 0, or more where it does not nest with what is on the lanes before. */
  lane: number;
}
