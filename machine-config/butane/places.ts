import { entryLabel, formatPath, oneLine, type FieldPath } from '../ignition/findings.js';

/** A place in a text, both from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Something to say about one place of a Butane file. */
export interface ButaneFinding extends Place {
  /** `storage.files[0].mode` */
  readonly path: string;
  /** One line; never shows contents, keys or hashes. */
  readonly message: string;
}

/** Where each key and each item of a file stands. */
export class Places {
  readonly #known = new Map<string, Place>();

  set(path: FieldPath, place: Place): void {
    this.#known.set(JSON.stringify(path), place);
  }

  /** The place of the path, or of the innermost thing around it that the file has. */
  of(path: FieldPath): Place {
    for (let length = path.length; length > 0; length -= 1) {
      const place = this.#known.get(JSON.stringify(path.slice(0, length)));
      if (place !== undefined) return place;
    }
    return { line: 1, column: 1 };
  }
}

interface Said {
  readonly at: FieldPath;
  readonly message: string;
  /** Where the parser knows a place and no path. */
  readonly place?: Place;
}

/** What is said about one Butane file. */
export class ButaneFindings {
  readonly places = new Places();
  /** The document, for the label of the entry that a finding is about; known when it has been read. */
  root: unknown;
  readonly #problems: Said[] = [];
  readonly #warnings: Said[] = [];

  refuse(at: FieldPath, message: string): void {
    this.#problems.push({ at, message });
  }

  warn(at: FieldPath, message: string): void {
    this.#warnings.push({ at, message });
  }

  refuseAt(place: Place, message: string): void {
    this.#problems.push({ at: [], message, place });
  }

  isRefused(): boolean {
    return this.#problems.length > 0;
  }

  /** In the order of the file. */
  get problems(): ButaneFinding[] {
    const found = this.#problems.map((said) => this.#finding(said));
    return found.sort((a, b) => a.line - b.line || a.column - b.column);
  }

  get warnings(): ButaneFinding[] {
    return this.#warnings.map((said) => this.#finding(said));
  }

  #finding({ at, message, place = this.places.of(at) }: Said): ButaneFinding {
    const label = entryLabel(this.root, at);
    const isClear = label === undefined || !/^[\x21-\x7e]{1,120}$/.test(label) || message.startsWith(`${label}: `);
    const text = oneLine(isClear ? message : `${label}: ${message}`);
    return { ...place, path: formatPath(at), message: text };
  }
}

/** `chrony.bu:12:7: storage.files[0].mode: …` */
export function formatButaneFinding(file: string, { line, column, path, message }: ButaneFinding): string {
  return [`${file}:${line}:${column}`, path, message].filter((part) => part !== '').join(': ');
}
