import type { Clock } from "./clock";
import { EventBus, type Listener } from '@shop/events';
import legacy = require("./legacy");
export type { Clock };
export * as shapes from "./shapes";

/** A key of the store. */
export type Key<T extends string = string> = `${T}:${number}` | symbol;

export interface Readable<T> extends Iterable<T>, Disposable {
  readonly size: number;
  read(key: Key, fallback?: T): Promise<T>;
  <U>(mapper: (value: T) => U): U[];
}

export enum Level { Low = 1, High = "high" }
declare const enum Flag { A }

export abstract class Store<K extends Key, V = unknown> extends EventBus<V> implements Readable<V>, shop.Closable {
  private readonly map = new Map<K, V>();
  static readonly VERSION: string = "1.0";

  constructor(private readonly clock: Clock, protected size: number = 10) {
    super();
  }

  @logged({ level: "info" })
  public async read(key: K, fallback: V = missing()): Promise<V> { // FIXME(ana): races with close()
    return this.map.get(key) ?? fallback;
  }

  abstract close(): void;
  protected handler = (event: Event): void => { this.emit(event as V); };
}

@Injectable()
export class MemoryStore extends Store<Key> {
  close() {}
}

export namespace Formats {
  export function parse(text: string): Level { return Level.Low; }
}

declare module "plugins" {
  export function register(name: string): void;
}

export function open(path: string): Store<Key>;
export function open(path: string, options: Options = {}): Store<Key> {
  return new MemoryStore(new shop.FileClock(path));
}

export const DEFAULT_TTL: number = 60_000;
export const größe = <T,>(list: readonly T[], by: (item: T) => number = () => 1): number => list.reduce((n, x) => n + by(x), 0);
const internal = 5; /* HACK keep in step with the server */
