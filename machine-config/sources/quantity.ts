const QUANTITY =
  /^(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE](?<exponent>[+-]?\d{1,3}))?$/u;

const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The value of a quantity as Kubernetes writes them, such as `500Mi`, `0.5`, `100m` or `1e3`. Undefined: it is none. */
export function parseQuantity(text: string): number | undefined {
  const parts = QUANTITY.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const factor = parts['suffix'] === undefined ? 10 ** Number(parts['exponent'] ?? 0) : FACTORS[parts['suffix']];
  return factor === undefined ? undefined : Number(parts['number']) * factor;
}
