/** Questions about a program's syntax tree, as acorn makes it. */
import type { AnyNode } from 'acorn';
import { METHODS } from './program-methods.ts';

export type Node = AnyNode & { [key: string]: unknown };

/** Lines and columns, from 1 and 0. */
export class Lines {
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

export interface Member {
  readonly computed: boolean;
  readonly object: Node;
  readonly property: Node;
}

/** What the program does with `a[i]`: the method that stands for it; `undefined`: it is left alone. */
export function howUsed(
  parent: Node | undefined,
  key: string | undefined,
): 'get' | 'put' | 'both' | 'assign' | undefined {
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

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

export function nameOf(node: Node): string {
  return node.type === 'Identifier' ? String(node['name']) : '';
}

/** Behind `#!`, and behind directives, which come first. */
export function placeOfCode(program: Node, source: string): number {
  let at = source.startsWith('#!') ? source.indexOf('\n') + 1 || source.length : 0;
  for (const statement of program['body'] as Node[]) {
    if (statement['directive'] === undefined) break;
    at = statement.end;
  }
  return at;
}

/** The name by which a method is called; empty: it is not known. */
export function methodOf(callee: Node): string {
  const property = callee['property'] as Node;
  if (callee['computed'] !== true) return nameOf(property);
  return property.type === 'Literal' && typeof property['value'] === 'string' ? property['value'] : '';
}

/** The element that a property of a pattern takes; `undefined`: it takes none. */
export function indexIn(property: Node): number | undefined {
  const key = property['key'] as Node | undefined;
  if (property.type !== 'Property' || property['computed'] === true || key?.type !== 'Literal') return undefined;
  return /^\d+$/.test(String(key['value'])) ? Number(key['value']) : undefined;
}

/** The accesses and calls of a chain, from the left; `undefined`: there is nothing to see, or a call by `?.(`. */
export function alongChain(chain: Node): Node[] | undefined {
  const along: Node[] = [];
  let isSeen = false;
  for (let node = chain['expression'] as Node; ; ) {
    if (node.type === 'CallExpression') {
      if (node['optional'] === true) return undefined;
      along.unshift(node);
      node = node['callee'] as Node;
    } else if (node.type === 'MemberExpression') {
      isSeen ||= node['computed'] === true || METHODS.has(methodOf(node));
      along.unshift(node);
      node = node['object'] as Node;
    } else break;
  }
  return isSeen ? along : undefined;
}

export function count(text: string, one: string): number {
  return text.split(one).length - 1;
}
