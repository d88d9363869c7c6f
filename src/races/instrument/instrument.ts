/**
 * Rewrites a module of the program so that its loads and stores of arrays are seen: `a[i]`, assignments, destructuring,
 * iteration, and calls of methods that typed arrays, `DataView`, `Buffer` and `Atomics` have. Lines and columns stay,
 * but for what is added within a line; what is told names the places in the source as it was.
 *
 * Each place becomes a call of an object that knows the module's places (program-calls.ts):
 *
 *     a[i]            __races.get(a, i, 7)
 *     a[i] = v        __races.put(a, i, 7)[__races.key] = v
 *     a[i] += v       __races.both(a, i, 7)[__races.key] += v
 *     a.fill(0)       __races.call(a, "fill", 7, 0)
 *     for (x of a)    for (x of __races.all(a, 7))
 *
 * The order of evaluation is the program's own. An assignment is told before its right side is evaluated, unless that
 * waits for something: then it is `__races.assign(a, i, 7, v)`.
 */
import { type AnyNode, type Comment, type Options, parse } from 'acorn';
import { NAME, preludeOf } from './module-prelude.ts';
import { METHODS } from './program-methods.ts';

interface Edit {
  readonly at: number;
  /** Of two at one place, the one with the higher number comes first. */
  readonly order: number;
  readonly text: string;
  /** Characters that it replaces. */
  readonly cut: number;
}

type Node = AnyNode & { [key: string]: unknown };

/** Called like these, what is passed is read. */
const READERS = /^(console|assert|util|expect|JSON|Buffer)$/;
const READING_FUNCTIONS = /^(assert|String|Number|structuredClone|inspect|deepEqual|deepStrictEqual|expect)$/;
const MAKERS = /(Array|Buffer|Set|Map)$/;

/**
 * @param source JavaScript
 * @param url names the module
 * @param isModule ESM
 * @returns the source rewritten; `undefined` if it cannot be parsed, or has nothing to see
 */
export function instrument(source: string, url: string, isModule: boolean): string | undefined {
  const options: Options = {
    ecmaVersion: 'latest',
    sourceType: isModule ? 'module' : 'script',
    allowHashBang: true,
    allowReturnOutsideFunction: !isModule,
    allowAwaitOutsideFunction: isModule,
    locations: true,
  };
  let program: Node;
  const comments: Comment[] = [];
  try {
    program = parse(source, { ...options, onComment: comments }) as Node;
  } catch {
    return undefined;
  }
  const rewriting = new Rewriting(source, comments);
  rewriting.visit(program, undefined, undefined);
  const result = rewriting.finish(program, url);
  try {
    // What cannot be parsed would be our mistake: then the module stays as it is.
    if (result !== undefined) parse(result, options);
  } catch {
    return undefined;
  }
  return result;
}

class Rewriting {
  readonly #source: string;
  /** The same without what stands in comments. */
  readonly #bare: string;
  readonly #edits: Edit[] = [];
  readonly #places: string[] = [];
  /** Within `a?.b`, where nothing may be evaluated on its own. */
  #chains = 0;

  constructor(source: string, comments: readonly Comment[]) {
    this.#source = source;
    let bare = '';
    for (const { start, end } of comments)
      bare += source.slice(bare.length, start) + source.slice(start, end).replace(/[^\n]/g, ' ');
    this.#bare = bare + source.slice(bare.length);
  }

  #place({ loc }: Node): number {
    const { line, column } = loc!.start;
    this.#places.push(`${line}:${column + 1}`);
    return this.#places.length - 1;
  }

  #insert(at: number, text: string, order: number, cut = 0): void {
    this.#edits.push({ at, order, text, cut });
  }

  /** Puts a call around an expression. @param more arguments behind it */
  #wrap(node: Node, method: string, more: string): void {
    // What is further out begins earlier and ends later.
    this.#insert(node.start, `${NAME}.${method}(`, -(node.end - node.start));
    this.#insert(node.end, `${more})`, node.end - node.start - 1e9);
  }

  visit(node: Node, parent: Node | undefined, key: string | undefined): void {
    const isChain = node.type === 'ChainExpression';
    if (isChain) this.#chains++;
    if (node.type === 'ObjectPattern') for (const one of node['properties'] as Node[]) one['inPattern'] = true;
    const within = this.#chains;
    if (this.#chains === 0) this.#rewrite(node, parent, key);
    for (const [name, child] of Object.entries(node)) {
      if (name === 'loc' || name === 'start' || name === 'end') continue;
      // What is passed along a chain is evaluated by itself.
      this.#chains = name === 'arguments' || name === 'body' ? 0 : within;
      if (Array.isArray(child)) {
        for (const one of child) if (isNode(one)) this.visit(one, node, name);
      } else if (isNode(child)) this.visit(child, node, name);
    }
    this.#chains = isChain ? within - 1 : within;
  }

  #rewrite(node: Node, parent: Node | undefined, key: string | undefined): void {
    switch (node.type) {
      case 'MemberExpression':
        this.#member(node as Node & Member, parent, key);
        break;
      case 'CallExpression':
        this.#call(node);
        break;
      case 'NewExpression':
        if (MAKERS.test(nameOf(node['callee'] as Node))) this.#arguments(node);
        break;
      case 'ForOfStatement':
        if (node['await'] !== true) this.#wrap(node['right'] as Node, 'all', `, ${this.#place(node['right'] as Node)}`);
        break;
      case 'SpreadElement':
        if (parent?.type !== 'ObjectExpression') this.#read(node['argument'] as Node);
        break;
      case 'TemplateLiteral':
        if (parent?.type === 'TaggedTemplateExpression') break;
        for (const one of node['expressions'] as Node[]) this.#read(one);
        break;
      case 'VariableDeclarator':
        this.#destructured(node['id'] as Node, node['init'] as Node | null);
        break;
      case 'AssignmentExpression':
        if (node['operator'] === '=') this.#destructured(node['left'] as Node, node['right'] as Node);
        break;
    }
  }

  #read(node: Node): void {
    if (node.type === 'Literal' || node.type === 'TemplateLiteral' || /Function/.test(node.type)) return;
    this.#wrap(node, 'all', `, ${this.#place(node)}`);
  }

  #destructured(pattern: Node, from: Node | null): void {
    if (pattern.type !== 'ArrayPattern' || from === null) return;
    const elements = pattern['elements'] as (Node | null)[];
    const count = elements.at(-1)?.type === 'RestElement' ? -1 : elements.length;
    this.#wrap(from, 'some', `, ${this.#place(from)}, ${count}`);
  }

  #member(node: Node & Member, parent: Node | undefined, key: string | undefined): void {
    const { computed, object, property } = node;
    if (!computed || object.type === 'Super' || property.type === 'TemplateLiteral') return;
    if (property.type === 'Literal' && !/^\d+$/.test(String(property['value']))) return;
    const how = howUsed(parent, key);
    if (how === undefined) return;
    const place = this.#place(node);
    if (how === 'assign') {
      // The whole assignment becomes a call.
      const right = parent!['right'] as Node;
      this.#insert(parent!.start, `${NAME}.assign(`, -(parent!.end - parent!.start));
      this.#cut(object.end, property.start, ', ');
      this.#cut(property.end, right.start, `, ${place}, `);
      this.#insert(parent!.end, ')', parent!.end - parent!.start - 1e9);
      return;
    }
    this.#insert(node.start, `${NAME}.${how}(`, -(node.end - node.start));
    this.#cut(object.end, property.start, ', ');
    const tail = how === 'get' ? `, ${place})` : `, ${place})[${NAME}.key]`;
    this.#cut(property.end, node.end, tail);
  }

  /** Replaces what is between two nodes; parentheses that belong to them stay. */
  #cut(from: number, to: number, text: string): void {
    const between = this.#bare.slice(from, to);
    const opens = (between.match(/\(/g) ?? []).length;
    const closes = (between.match(/\)/g) ?? []).length;
    const lines = (between.match(/\n/g) ?? []).length;
    this.#insert(from, `${')'.repeat(closes)}${text}${'\n'.repeat(lines)}${'('.repeat(opens)}`, 0, to - from);
  }

  #call(node: Node): void {
    const callee = node['callee'] as Node;
    if (callee.type === 'MemberExpression' && callee['computed'] !== true) {
      const object = callee['object'] as Node;
      const name = nameOf(callee['property'] as Node);
      if (object.type !== 'Super' && METHODS.has(name)) {
        this.#method(node, callee, object, name);
        return;
      }
      if (READERS.test(nameOf(object)) || name === 'from') this.#arguments(node);
      return;
    }
    if (READING_FUNCTIONS.test(nameOf(callee))) this.#arguments(node);
  }

  #method(node: Node, callee: Node, object: Node, name: string): void {
    const place = this.#place(callee['property'] as Node);
    const given = node['arguments'] as Node[];
    const open = this.#bare.indexOf('(', callee.end);
    this.#insert(node.start, `${NAME}.call(`, -(node.end - node.start));
    const between = this.#bare.slice(object.end, open + 1);
    const closes = (between.match(/\)/g) ?? []).length;
    const lines = (between.match(/\n/g) ?? []).length;
    const text = `${')'.repeat(closes)}, "${name}", ${place}${given.length > 0 ? ', ' : ''}${'\n'.repeat(lines)}`;
    this.#insert(object.end, text, 0, open + 1 - object.end);
  }

  #arguments(node: Node): void {
    for (const one of node['arguments'] as Node[]) if (one.type !== 'SpreadElement') this.#read(one);
  }

  finish(program: Node, url: string): string | undefined {
    if (this.#places.length === 0) return undefined;
    // At one place: what ends there first (the inner ones first), then what begins there (the outer ones first).
    const edits = this.#edits.sort((a, b) => a.at - b.at || a.order - b.order);
    const source = this.#source;
    const code = placeOfCode(program, source);
    const shifts: number[] = [];
    let text = '';
    let at = 0;
    let codeAt = -1;
    const copy = (to: number): void => {
      if (codeAt < 0 && to > code) {
        text += source.slice(at, code);
        at = code;
        codeAt = text.length;
      }
      text += source.slice(at, to);
      at = to;
    };
    const lines = new Lines(source);
    for (const { at: place, text: added, cut } of edits) {
      if (place > at || codeAt < 0) copy(Math.max(at, place));
      const { line, column } = lines.of(place);
      // The last line of what is added is where the rest of its line goes on.
      shifts.push(line, column, added.length - cut);
      text += added;
      at = Math.max(at, place + cut);
    }
    copy(source.length);
    if (codeAt < 0) codeAt = text.length;
    const begin = preludeOf(
      url,
      this.#places.join(' '),
      `${lines.of(code).line} ${lines.of(code).column} ${shifts.join(' ')}`,
    );
    return text.slice(0, codeAt) + begin + text.slice(codeAt);
  }
}

/** Lines and columns, from 1 and 0. */
class Lines {
  readonly #begins: number[] = [0];

  constructor(source: string) {
    for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) this.#begins.push(at + 1);
  }

  of(place: number): { line: number; column: number } {
    let [low, high] = [0, this.#begins.length];
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#begins[middle] <= place) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: place - this.#begins[low] };
  }
}

interface Member {
  readonly computed: boolean;
  readonly object: Node;
  readonly property: Node;
}

/** What the program does with `a[i]`: the method that stands for it; `undefined`: it is left alone. */
function howUsed(parent: Node | undefined, key: string | undefined): 'get' | 'put' | 'both' | 'assign' | undefined {
  if (parent === undefined) return 'get';
  switch (parent.type) {
    case 'AssignmentExpression':
      if (key !== 'left') return 'get';
      if (parent['operator'] !== '=') return 'both';
      return waits(parent['right'] as Node) ? 'assign' : 'put';
    case 'UpdateExpression':
      return 'both';
    case 'ArrayPattern':
    case 'RestElement':
      return 'put';
    case 'AssignmentPattern':
      return key === 'left' ? 'put' : 'get';
    case 'Property':
      // Of a pattern, or of an object that is made.
      return key === 'value' && parent['inPattern'] === true ? 'put' : 'get';
    case 'ForOfStatement':
    case 'ForInStatement':
      return key === 'left' ? 'put' : 'get';
    case 'CallExpression':
    case 'NewExpression':
      return key === 'callee' ? undefined : 'get';
    case 'TaggedTemplateExpression':
      return key === 'tag' ? undefined : 'get';
    case 'UnaryExpression':
      return parent['operator'] === 'delete' ? undefined : 'get';
    default:
      return 'get';
  }
}

/** Whether evaluating it can wait: something else may happen before the assignment. */
function waits(node: Node): boolean {
  if (node.type === 'AwaitExpression' || node.type === 'YieldExpression') return true;
  if (/Function|Class/.test(node.type)) return false;
  return Object.entries(node).some(([name, child]) => {
    if (name === 'loc') return false;
    return Array.isArray(child) ? child.some((one) => isNode(one) && waits(one)) : isNode(child) && waits(child);
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

function nameOf(node: Node): string {
  return node.type === 'Identifier' ? String(node['name']) : '';
}

/** Behind `#!`, and behind directives, which come first. */
function placeOfCode(program: Node, source: string): number {
  let at = source.startsWith('#!') ? source.indexOf('\n') + 1 || source.length : 0;
  for (const statement of program['body'] as Node[]) {
    if (statement['directive'] === undefined) break;
    at = statement.end;
  }
  return at;
}
