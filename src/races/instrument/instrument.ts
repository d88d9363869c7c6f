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
import { type Comment, type Options, parse } from 'acorn';
import { NAME, preludeOf } from './module-prelude.ts';
import { METHODS } from './program-methods.ts';
import {
  alongChain,
  count,
  howUsed,
  indexIn,
  isNode,
  Lines,
  type Member,
  methodOf,
  type Node,
  nameOf,
  placeOfCode,
} from './syntax.ts';

interface Edit {
  readonly at: number;
  /** Of two at one place, the one with the higher number comes first. */
  readonly order: number;
  readonly text: string;
  /** Characters that it replaces. */
  readonly cut: number;
}

/** Called like these, what is passed is read. */
const READERS = /^(console|assert|util|expect|JSON|Buffer)$/;
const READING_FUNCTIONS = /^(assert|String|Number|structuredClone|inspect|deepEqual|deepStrictEqual|expect)$/;
const MAKERS = /(Array|Buffer|Set|Map)$/;

/**
 * @param source JavaScript
 * @param url names the module
 * @param isModule ESM
 * @param missed is told of what will not be seen, and where: `LINE:COLUMN`
 * @returns the source rewritten; `undefined` if it has nothing to see, or cannot be parsed
 */
export function instrument(
  source: string,
  url: string,
  isModule: boolean,
  missed: Missed = () => {},
): string | undefined {
  const options: Options = {
    ecmaVersion: 'latest',
    sourceType: isModule ? 'module' : 'commonjs',
    allowHashBang: true,
    allowAwaitOutsideFunction: isModule,
    locations: true,
  };
  let program: Node;
  const comments: Comment[] = [];
  try {
    program = parse(source, { ...options, onComment: comments }) as Node;
  } catch (error) {
    missed(...unparsed(error));
    return undefined;
  }
  const rewriting = new Rewriting(source, comments, missed);
  rewriting.visit(program, undefined, undefined);
  const result = rewriting.finish(program, url);
  try {
    // What cannot be parsed would be our mistake: then the module stays as it is.
    if (result !== undefined) parse(result, options);
  } catch (error) {
    missed(unparsed(error)[0], '1:1');
    return undefined;
  }
  return result;
}

/** @param what could not be seen @param at `LINE:COLUMN` */
export type Missed = (what: string, at: string) => void;

/** What acorn says of a module that is no program for it. */
function unparsed(error: unknown): [what: string, at: string] {
  const { message, loc } = error as SyntaxError & { loc?: { line: number; column: number } };
  const at = loc === undefined ? '1:1' : `${loc.line}:${loc.column + 1}`;
  return [`loads and stores of this module, whose syntax is not known: ${message.replace(/ \(\d+:\d+\)$/, '')}`, at];
}

class Rewriting {
  readonly #source: string;
  /** The same without what stands in comments. */
  readonly #bare: string;
  readonly #edits: Edit[] = [];
  readonly #places: string[] = [];
  /** Within a chain of `?.` that stays as it is, where nothing may be evaluated on its own. */
  #chains = 0;
  /** Where the nodes along a chain that is rewritten begin: what stands before `?.` stands before them. */
  readonly #begins = new Map<Node, number>();
  /** What comes behind `?.`, until the `?.` is replaced. */
  readonly #links = new Set<Node>();
  readonly #missed: Missed;

  constructor(source: string, comments: readonly Comment[], missed: Missed) {
    this.#source = source;
    this.#missed = missed;
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
    this.#open(node, method);
    this.#close(node, `${more})`);
  }

  #beginOf(node: Node): number {
    return this.#begins.get(node) ?? node.start;
  }

  /** What is further out begins earlier and ends later. */
  #open(node: Node, method: string): void {
    const begin = this.#beginOf(node);
    this.#insert(begin, `${NAME}.${method}(`, begin - node.end);
  }

  #close(node: Node, text: string): void {
    this.#insert(node.end, text, node.end - this.#beginOf(node) - 1e9);
  }

  visit(node: Node, parent: Node | undefined, key: string | undefined): void {
    const isChain = node.type === 'ChainExpression' && !this.#chain(node, parent, key);
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
        this.#made(node);
        if (MAKERS.test(nameOf(node['callee'] as Node))) this.#arguments(node);
        break;
      case 'ForOfStatement':
        if (node['await'] !== true) this.#wrap(node['right'] as Node, 'all', `, ${this.#place(node['right'] as Node)}`);
        break;
      case 'SpreadElement':
        if (parent?.type !== 'ObjectExpression') this.#read(node['argument'] as Node);
        else this.#wrap(node['argument'] as Node, 'some', `, ${this.#place(node['argument'] as Node)}, -1`);
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
    if (from === null) return;
    if (pattern.type === 'ObjectPattern') {
      const indices = (pattern['properties'] as Node[]).map(indexIn).filter((index) => index !== undefined);
      if (indices.length > 0) this.#wrap(from, 'picked', `, ${this.#place(from)}, ${indices.join(', ')}`);
    }
    if (pattern.type !== 'ArrayPattern') return;
    const elements = pattern['elements'] as (Node | null)[];
    const count = elements.at(-1)?.type === 'RestElement' ? -1 : elements.length;
    this.#wrap(from, 'some', `, ${this.#place(from)}, ${count}`);
  }

  /**
   * `a?.b` becomes `((__races.it = a) == null ? undefined : __races.it.b)`, so that what comes behind `?.` can be
   * rewritten as elsewhere: `it` is read before anything else is evaluated.
   * @returns whether it does
   */
  #chain(chain: Node, parent: Node | undefined, key: string | undefined): boolean {
    if (this.#chains > 0 || key === 'callee' || key === 'tag' || parent?.['operator'] === 'delete') return false;
    const along = alongChain(chain);
    if (along === undefined) return false;
    let begin = chain.start;
    let links = 0;
    for (const node of along) {
      if (node['optional'] === true) {
        const object = node['object'] as Node;
        const first = begin === chain.start;
        this.#insert(begin, `((${NAME}.it = `, first ? begin - chain.end + 0.5 : -4e8);
        begin = object.end;
        const closes = count(this.#bare.slice(begin, (node['property'] as Node).start), ')');
        this.#insert(begin, `${')'.repeat(closes)}) == null ? undefined : `, -5e8);
        this.#insert(begin, `${NAME}.it`, -0.5);
        this.#links.add(node);
        links++;
      }
      if (links > 0) this.#begins.set(node, begin);
    }
    this.#insert(chain.end, ')'.repeat(links), chain.end - chain.start - 1e9 - 0.5);
    return true;
  }

  #member(node: Node & Member, parent: Node | undefined, key: string | undefined): void {
    if (this.#access(node, parent, key) || !this.#links.has(node)) return;
    this.#cut(node, node.object.end, node.property.start, node.computed ? '[' : '.');
  }

  /** @returns whether it is one that can be that of an element */
  #access(node: Node & Member, parent: Node | undefined, key: string | undefined): boolean {
    const { computed, object, property } = node;
    if (!computed || object.type === 'Super' || property.type === 'TemplateLiteral') return false;
    if (property.type === 'Literal' && !/^\d+$/.test(String(property['value']))) return false;
    const how = howUsed(parent, key);
    if (how === undefined) return false;
    const place = this.#place(node);
    if (how === 'assign') {
      // The whole assignment becomes a call.
      const right = parent!['right'] as Node;
      this.#open(parent!, 'assign');
      this.#cut(node, object.end, property.start, ', ');
      this.#cut(node, property.end, right.start, `, ${place}, `);
      this.#close(parent!, ')');
      return true;
    }
    this.#open(node, how);
    this.#cut(node, object.end, property.start, ', ');
    const tail = how === 'get' ? `, ${place})` : `, ${place})[${NAME}.key]`;
    this.#cut(node, property.end, node.end, tail);
    return true;
  }

  /** Replaces what is between two nodes; parentheses that belong to them stay. @param of behind its object */
  #cut(of: Node, from: number, to: number, text: string): void {
    const between = this.#bare.slice(from, to);
    const opens = count(between, '(');
    const closes = this.#closes(of, between);
    this.#insert(from, `${closes}${text}${'\n'.repeat(count(between, '\n'))}${'('.repeat(opens)}`, 0, to - from);
  }

  /** Parentheses around the object of a node end before what replaces `?.` begins. */
  #closes(of: Node, between: string): string {
    return this.#links.delete(of) ? '' : ')'.repeat(count(between, ')'));
  }

  #call(node: Node): void {
    const callee = node['callee'] as Node;
    if (callee.type === 'MemberExpression') {
      const object = callee['object'] as Node;
      const name = methodOf(callee);
      if (object.type !== 'Super' && METHODS.has(name)) {
        this.#method(node, callee, object, name);
        return;
      }
      if (READERS.test(nameOf(object)) || name === 'from') this.#arguments(node);
      return;
    }
    this.#made(node);
    if (READING_FUNCTIONS.test(nameOf(callee))) this.#arguments(node);
  }

  /** What makes programs of texts. */
  #made(node: Node): void {
    const name = nameOf(node['callee'] as Node);
    const { line, column } = node.loc!.start;
    if (name === 'eval' || name === 'Function')
      this.#missed(`loads and stores in what ${name} is given`, `${line}:${column + 1}`);
  }

  #method(node: Node, callee: Node, object: Node, name: string): void {
    const place = this.#place(callee['property'] as Node);
    const given = node['arguments'] as Node[];
    const open = this.#bare.indexOf('(', callee.end);
    this.#open(node, 'call');
    const between = this.#bare.slice(object.end, open + 1);
    const lines = '\n'.repeat(count(between, '\n'));
    const closes = this.#closes(callee, between);
    const text = `${closes}, "${name}", ${place}${given.length > 0 ? ', ' : ''}${lines}`;
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
