/** Arrows of a picture: what passes from one rank to another, from the arrows of a trace. */
import type { TraceArrow, TraceSpan } from './trace-reader.ts';

export type ArrowKind = 'put' | 'get' | 'update' | 'message' | 'gather' | 'signal' | 'lock' | 'notification';

export interface SceneArrow {
  readonly kind: ArrowKind;
  readonly from: number;
  readonly to: number;
  /** Nanoseconds. */
  readonly sent: number;
  readonly arrived: number;
  /** At the rank whose doing it is; empty where its kind says all. */
  readonly label: string;
  /** Whether it is `to` whose doing it is (a get). */
  readonly labelAtEnd: boolean;
}

/** Calls of one kind to one target, one right after the other, that become one arrow. */
const RUN = 4;

export function sceneArrow({ name, from, to }: TraceArrow): SceneArrow {
  const kind = arrowKind(name);
  const labelAtEnd = kind === 'get';
  const label = arrowLabel(name, labelAtEnd ? to : from, labelAtEnd ? from.rank : to.rank);
  const arrived = Math.max(from.start, to.end);
  return { kind, from: from.rank, to: to.rank, sent: from.start, arrived, label, labelAtEnd };
}

export function arrowKind(name: string): ArrowKind {
  if (name === 'get' || name === 'rget') return 'get';
  if (name === 'put' || name === 'rput' || name === 'putNotify') return 'put';
  if (name === 'message' || name === 'request') return 'message';
  if (name === 'barrier' || name === 'post' || name === 'complete') return 'signal';
  return name === 'lock' || name === 'notification' || name === 'gather' ? name : 'update';
}

function arrowLabel(name: string, { args }: TraceSpan, peer: number): string {
  switch (arrowKind(name)) {
    case 'put':
    case 'get':
    case 'update':
      if (args['requests'] !== undefined) return `${name} ${peer}: ${args['bytes']} B, ${args['requests']} requests`;
      return `${name} ${peer}: ${args['bytes']} B at ${args['disp']}`;
    case 'message':
      return name === 'message' ? `${args['bytes']} B` : '';
    case 'gather':
      return `gathered: ${args['bytes']} B`;
    default:
      return '';
  }
}

/** Many calls of one kind in a row, of one rank to another, are one arrow with a number. */
export function collapse(arrows: readonly SceneArrow[]): SceneArrow[] {
  const byOrigin = new Map<string, SceneArrow[]>();
  for (const arrow of [...arrows].sort((a, b) => a.sent - b.sent)) {
    const key = `${arrow.labelAtEnd ? arrow.to : arrow.from}`;
    byOrigin.set(key, [...(byOrigin.get(key) ?? []), arrow]);
  }
  const result: SceneArrow[] = [];
  for (const own of byOrigin.values()) {
    for (let i = 0; i < own.length; ) {
      const { kind, from, to, label } = own[i];
      const [what] = label.split(':');
      let j = i;
      while (
        j < own.length &&
        own[j].kind === kind &&
        own[j].from === from &&
        own[j].to === to &&
        own[j].label.split(':')[0] === what
      )
        j++;
      const many = j - i >= RUN;
      // What has no label is a request.
      if (many && kind === 'message' && label === '') {
        result.push({ ...own[i], arrived: own[j - 1].arrived, label: `${j - i} requests` });
      } else if (many && (kind === 'put' || kind === 'get' || kind === 'update')) {
        const bytes = own.slice(i, j).reduce((sum, arrow) => sum + Number(/: (\d+) B/.exec(arrow.label)?.[1] ?? 0), 0);
        result.push({ ...own[i], arrived: own[j - 1].arrived, label: `${j - i} × ${what}: ${bytes} B` });
      } else result.push(...own.slice(i, j));
      i = j;
    }
  }
  return result;
}
