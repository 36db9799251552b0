/** One value of a metric. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  /** One line. */
  readonly help: string;
  readonly samples: readonly Sample[];
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** In label values: the escapes that the format knows. */
function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function line(name: string, { labels, value }: Sample): string {
  const told = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${told.length === 0 ? '' : `{${told.join(',')}}`} ${value}`;
}

/** The metrics in the text format of Prometheus; those without a value are left out. */
export function metricsText(metrics: readonly Metric[]): string {
  const blocks = metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples.map((sample) => line(name, sample))].join('\n'),
    );
  return blocks.length === 0 ? '' : `${blocks.join('\n')}\n`;
}
