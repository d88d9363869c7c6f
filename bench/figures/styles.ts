/**
 * How a scheme looks: the same colour, marker and pattern in all figures. Schemes that meet in a figure differ in
 * lightness, so that they can be told apart in grey, and in marker and pattern besides (a test compares them).
 */

export interface Style {
  readonly color: string;
  /** A symbol of ECharts, or a path. */
  readonly symbol: string;
  /** Of bars: the direction of the lines, in degrees; undefined: plain. */
  readonly stripes: number | undefined;
}

/** A scheme within the name of a line, and what else the name says: another size, another operation. */
export interface Named {
  readonly scheme: string;
  readonly variant: string;
}

const DOWN = 'path://M0,0L10,0L5,9Z';
const CROSS = 'path://M0,2L2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5Z';
const PLUS = 'path://M3.5,0L6.5,0L6.5,3.5L10,3.5L10,6.5L6.5,6.5L6.5,10L3.5,10L3.5,6.5L0,6.5L0,3.5L3.5,3.5Z';
const STAR = 'path://M5,0L6.2,3.6L10,3.8L7,6.1L8.1,10L5,7.7L1.9,10L3,6.1L0,3.8L3.8,3.6Z';

const style = (color: string, symbol: string, stripes?: number): Style => ({ color, symbol, stripes });

const TWO_SIDED = style('#1f4e9e', 'circle');
/** Also of accumulates and of gets: the adapter does it. */
const DIRECT = style('#f0a04b', 'triangle', 45);
const EVERY_REQUEST = style('#2f9e62', 'rect', -45);
const NETWORK = style('#7b5ea7', PLUS, 20);
const ACCUMULATE = style('#4a90c2', 'rect', 0);
const PACK = style('#e3b23c', 'rect', 90);

/** By what a figure calls it. A scheme with several names is there for each. */
const STYLES: Readonly<Record<string, Style>> = {
  // Locks.
  'two-sided': TWO_SIDED,
  direct: DIRECT,
  'one-sided': DIRECT,
  hybrid: EVERY_REQUEST,
  remote: style('#c3295b', 'diamond', 90),
  'again at once': style('#7f1d1d', CROSS, 0),
  // When a hybrid lock changes its mode, and who asks for it.
  'every-request': EVERY_REQUEST,
  'threshold:4': style('#a9d9a4', DOWN, 90),
  history: style('#0b3d2e', 'diamond', 45),
  never: style('#c9a400', 'triangle', 0),
  'network mode': NETWORK,
  'rank of its node': EVERY_REQUEST,
  'rank of another node': NETWORK,
  // Fences.
  deferred: style('#1b1b3a', 'circle'),
  'immediate-naive': style('#c0392b', 'triangle', 45),
  'immediate-optimized': style('#f2b134', 'diamond', 0),
  'remote-notify': style('#3a86c8', 'rect', -45),
  'local completion, barrier': style('#b03a2e', CROSS, 45),
  'the four fences together': style('#7fb3d5', 'circle'),
  messages: style('#5b3a8c', DOWN),
  'finish messages': style('#d98cb3', 'triangle', 45),
  flags: style('#3f8f8f', 'rect', 90),
  // Collectives, and synchronizations.
  barrier: style('#3d3d3d', 'circle'),
  allreduce: style('#d1603d', 'triangle', 45),
  'reduce-scatter': style('#6fb7d6', 'rect', -45),
  // Barriers by the adapter.
  adapter: style('#0f766e', 'circle'),
  waits: style('#e08a3c', 'diamond', 45),
  host: style('#4338a8', 'triangle', -45),
  hardware: style('#c4c4c4', 'rect', 0),
  formula: style('#7a1626', CROSS, 90),
  dissertation: style('#111111', STAR),
  fence: style('#6e4700', 'circle', 45),
  'start, post, complete, wait': style('#c98bc9', 'triangle', 90),
  'lock, unlock': style('#3b7f7f', 'rect', -45),
  // Updates.
  'get-modify-put': style('#7a1f3d', 'circle'),
  accumulate: ACCUMULATE,
  packed: style('#2e7d4f', 'diamond', -45),
  'an epoch each': ACCUMULATE,
  'one epoch': style('#c9b037', DOWN, 90),
  // Layouts.
  'multi-write': style('#b5452c', 'triangle', 45),
  pack: PACK,
  sgrs: style('#22577a', 'circle'),
  contiguous: style('#8c8c8c', 'diamond', 0),
  sends: style('#3f1d4d', 'diamond', 45),
  receives: style('#d6a461', DOWN, 0),
  auto: style('#0a0a0a', PLUS, 20),
  'host-assisted': style('#2a9d8f', DOWN, -45),
  // Handles.
  implicit: style('#34495e', 'circle'),
  explicit: style('#d9722e', 'diamond', 45),
  aggregate: style('#5fbfb0', PLUS, 90),
  'aggregate-gets': style('#b5452c', 'triangle', 45),
  buffered: style('#2e8b57', 'rect', 90),
  // The styles of a program.
  blocking: style('#6b4c9a', 'circle', 0),
  'non-blocking': style('#e08e45', 'triangle', 45),
  // What is compared is a size.
  'n = 2048': style('#1f4e9e', 'circle'),
  'n = 3000': style('#e08e45', 'triangle', 45),
  // Deliveries of supersteps.
  baseline: style('#1f4e9e', 'circle'),
  compressed: style('#5fbfb0', 'rect', -45),
  multicast: style('#a07fd0', 'diamond', 90),
  'zero-copy': style('#c0392b', 'triangle', 45),
  'no scatter': style('#f2b134', DOWN, 0),
  'with all others': style('#1f4e9e', 'circle'),
  'with the neighbour': style('#e08e45', 'triangle', 45),
  'one after the other': style('#858585', 'diamond', 0),
  measured: style('#3a86c8', 'rect', -45),
  paper: style('#111111', STAR),
  // Bulk-synchronous programs, and what they run on.
  strips: style('#1f4e9e', 'circle'),
  squares: style('#e08e45', 'triangle', 45),
  'diamond DAG': style('#1b1b3a', 'circle'),
  'cube DAG': style('#c0392b', 'triangle', 45),
  'matrix × vector': style('#3a86c8', 'rect', -45),
  'matrix × matrix': style('#7aa874', DOWN, 90),
  'sort by regular sampling': style('#f2b134', 'diamond', 0),
  InfiniBand: style('#1f4e9e', 'circle'),
  Ethernet: style('#e08e45', 'triangle', 45),
  'inner product': style('#1f4e9e', 'circle'),
  LU: style('#c0587a', 'triangle', 45),
  FFT: style('#7fc4a8', 'rect', -45),
  // Supersteps on an Ethernet, against the length of slots.
  'packets in slots': style('#1f4e9e', 'circle'),
  'acknowledgements off the bus': style('#8fd3c5', 'rect', -45),
  'writes to sockets': style('#d9722e', 'triangle', 45),
  'one write': style('#0a0a0a', STAR, 90),
  model: style('#7a1626', CROSS, 90),
  'bus with back-off': style('#1f4e9e', 'circle'),
  'packets not alone': style('#1f4e9e', 'circle'),
  contention: style('#e08e45', 'triangle', 45),
  'process 0': style('#1f4e9e', 'circle'),
  'process 1': style('#e08e45', 'triangle', 45),
  'process 2': style('#2d2d2d', 'rect', -45),
  'process 3': style('#8fd3c5', 'diamond', 90),
  shift: style('#1f4e9e', 'circle', 0),
  'total exchange': style('#e08e45', 'triangle', 45),
  unpaced: style('#0a0a0a', PLUS, 0),
  'Q = 1': style('#8fd3c5', 'diamond', 45),
  TCP: style('#1f4e9e', 'circle'),
  datagrams: style('#8fd3c5', 'rect', -45),
  'datagrams in slots': style('#8fd3c5', 'rect', -45),
  chunks: style('#e08e45', 'triangle', 45),
  'p = 6': style('#0a0a0a', 'diamond', 90),
  'p = 2': style('#1f4e9e', 'circle'),
  'p = 4': style('#e08e45', 'triangle', 45),
  'p = 8': style('#f0dc82', 'rect', -45),
  'frame by slot': style('#0a0a0a', CROSS, 90),
  // Schedules.
  'issue-order': style('#444444', 'circle'),
  interleave: style('#2f80c0', 'diamond', 45),
  'gets-first': style('#d35400', 'triangle', -45),
  // What an HTTP server keeps its sessions in.
  onesided: style('#1f4e9e', 'circle'),
  LMDB: style('#e08e45', 'triangle', 45),
  'LMDB, durable': style('#9a4a1f', DOWN, 90),
  Redis: style('#8fd3c5', 'rect', -45),
  'a Map in each worker': style('#d9d9d9', 'diamond', 0),
};

/** For what nobody has put above: chosen by the name alone, so that it is the same in all figures. */
const OTHERS = ['#264653', '#b56576', '#e9c46a', '#457b9d', '#588157', '#9d4edd', '#f28482', '#6c757d'];
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', DOWN, PLUS, CROSS];

/** The style of a scheme. */
export function styleOf(scheme: string): Style {
  if (Object.hasOwn(STYLES, scheme)) return STYLES[scheme];
  let hash = 0;
  for (const letter of scheme) hash = (31 * hash + letter.charCodeAt(0)) % 65_521;
  return style(OTHERS[hash % OTHERS.length], SYMBOLS[hash % SYMBOLS.length], [0, 45, 90, -45][hash % 4]);
}

/** Whether a scheme has a style of its own. */
function isScheme(name: string): boolean {
  return Object.hasOwn(STYLES, name);
}

/** Which part of a line's name is its scheme: `two-sided, n = 3000`, `put, aggregate`. */
export function named(name: string): Named {
  if (isScheme(name)) return { scheme: name, variant: '' };
  const parts = name.split(', ');
  for (let start = 0; start < parts.length; start++) {
    for (let end = parts.length; end > start; end--) {
      const scheme = parts.slice(start, end).join(', ');
      if (isScheme(scheme)) return { scheme, variant: [...parts.slice(0, start), ...parts.slice(end)].join(', ') };
    }
  }
  return { scheme: name, variant: '' };
}
