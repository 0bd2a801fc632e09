// Fills the page from the document in it. Without D3, as where a build had none, tables take the drawings' places.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('document').textContent);
  const draws = typeof d3 !== 'undefined';
  const report = data.report;

  // ---- elements and words --------------------------------------------------------------------------------------------

  const SVG = 'http://www.w3.org/2000/svg';
  let ids = 0;
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const into = (id, ...children) => document.getElementById(id).append(...children);
  const short = (x) => x === 0 ? '0' : Math.abs(x) >= 1e-3 && Math.abs(x) < 1e6 ? String(Number(x.toPrecision(4)))
    : x.toExponential(2);
  const seconds = (s) => s >= 100 ? `${s.toFixed(0)} s` : s >= 0.1 ? `${s.toPrecision(3)} s` : `${(1e3 * s).toPrecision(3)} ms`;
  const count = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

  const heading = (head, numbers) => make('thead', {}, make('tr', {}, ...head.map((cell, k) =>
    make('th', {scope: 'col', class: numbers(k) ? 'number' : ''}, cell))));
  const table = (caption, head, rows, numbers) => make('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    make('table', {}, make('caption', {}, caption), ...(head ? [heading(head, numbers)] : []),
      make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((cell, k) =>
        make(k === 0 ? 'th' : 'td', k === 0 ? {scope: 'row'} : {class: numbers(k) ? 'number' : ''}, String(cell))))))));
  const pairs = (caption, rows) => table(caption, null, rows, () => false);
  // A table beside its drawing, closed; alone where nothing is drawn.
  const behind = (summary, made) => make('details', draws ? {} : {open: ''}, make('summary', {}, summary), made);

  // ---- drawings ------------------------------------------------------------------------------------------------------

  // Text in a drawing has the size that it says where the drawing is as wide: one on a whole line, one of several.
  const alone = {width: 520, height: 220, top: 8, right: 12, bottom: 30, left: 48};
  const small = {width: 270, height: 150, top: 8, right: 10, bottom: 24, left: 40};

  // An empty drawing that a screen reader announces by its title and description.
  const drawing = (title, description, size) => {
    const id = `d${++ids}`;
    const svg = d3.create('svg').attr('viewBox', `0 0 ${size.width} ${size.height}`).attr('role', 'img')
      .attr('aria-labelledby', `${id}t ${id}d`);
    svg.append('title').attr('id', `${id}t`).text(title);
    svg.append('desc').attr('id', `${id}d`).text(description);
    return svg;
  };
  const axes = (svg, size, x, y, xAxis) => {
    svg.append('g').attr('class', 'axis').attr('aria-hidden', 'true')
      .attr('transform', `translate(0,${size.height - size.bottom})`).call(xAxis);
    svg.append('g').attr('class', 'axis').attr('aria-hidden', 'true')
      .attr('transform', `translate(${size.left},0)`).call(d3.axisLeft(y).ticks(4).tickFormat(short));
  };
  const range = (values, withZero) => {
    const [low, high] = d3.extent(withZero ? values.concat(0) : values);
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  };
  const zeroLine = (svg, size, y) => svg.append('line').attr('class', 'zero').attr('x1', size.left)
    .attr('x2', size.width - size.right).attr('y1', y(0)).attr('y2', y(0));
  const yScale = (size, domain) => d3.scaleLinear(domain, [size.height - size.bottom, size.top]).nice(4);

  const line = (size, title, description, xs, ys, {withZero = true, dots = false, label = '', tick = null} = {}) => {
    const svg = drawing(title, description, size);
    const x = d3.scaleLinear(range(xs), [size.left, size.width - size.right]);
    const y = yScale(size, range(ys, withZero));
    axes(svg, size, x, y, d3.axisBottom(x).ticks(tick ? 3 : 5).tickFormat(tick || ((v) => Number.isInteger(v) ? String(v) : '')));
    if (withZero && y.domain()[0] < 0) zeroLine(svg, size, y);
    svg.append('path').attr('class', 'curve').attr('d', d3.line()(ys.map((v, k) => [x(xs[k]), y(v)])));
    if (dots) svg.selectAll('circle').data(ys).join('circle').attr('class', 'with').attr('r', 2.5)
      .attr('cx', (v, k) => x(xs[k])).attr('cy', (v) => y(v));
    if (label) svg.append('text').attr('x', (size.left + size.width - size.right) / 2).attr('y', size.height - 6)
      .attr('text-anchor', 'middle').attr('aria-hidden', 'true').text(label);
    return svg.node();
  };

  const bars = (size, title, description, names, values) => {
    const svg = drawing(title, description, size);
    const x = d3.scaleBand(names.map((_, k) => k), [size.left, size.width - size.right]).padding(names.length > 20 ? 0.15 : 0.25);
    const y = yScale(size, range(values, true));
    const widest = 6 * Math.max(...names.map((n) => n.length)) + 2; // of letters of 11 pixels
    const every = Math.ceil(widest / x.step());
    axes(svg, size, x, y, d3.axisBottom(x).tickSize(0).tickPadding(6).tickValues(x.domain().filter((k) => k % every === 0))
      .tickFormat((k) => names[k]));
    svg.selectAll('rect').data(values).join('rect').attr('class', (v) => v < 0 ? 'against' : 'with')
      .attr('x', (v, k) => x(k)).attr('width', x.bandwidth())
      .attr('y', (v) => Math.min(y(v), y(0))).attr('height', (v) => Math.abs(y(v) - y(0)));
    zeroLine(svg, size, y);
    return svg.node();
  };

  // Names to the left, bars to the right of them; those against the component begin at the same place and say so by sign.
  const leading = (title, description, names, values) => {
    const size = {...small, height: 12 + 17 * Math.max(values.length, 1)};
    const svg = drawing(title, description, size);
    const left = 12 + 6.5 * Math.min(d3.max(names, (n) => n.length) || 0, 18);
    const x = d3.scaleLinear([0, d3.max(values, Math.abs) || 1], [0, size.width - left - 40]);
    const rows = svg.selectAll('g').data(values).join('g').attr('aria-hidden', 'true')
      .attr('transform', (v, k) => `translate(0,${6 + 17 * k})`);
    rows.append('text').attr('x', left - 6).attr('y', 11).attr('text-anchor', 'end')
      .text((v, k) => names[k].length > 18 ? `${names[k].slice(0, 17)}…` : names[k]);
    rows.append('rect').attr('class', (v) => v < 0 ? 'against' : 'with').attr('x', left).attr('y', 2).attr('height', 12)
      .attr('width', (v) => x(Math.abs(v)));
    rows.append('text').attr('x', (v) => left + x(Math.abs(v)) + 5).attr('y', 11).text((v) => v.toFixed(2).replace('-', '−'));
    return svg.node();
  };

  // The outer product of two columns along axes, as an image: blue with, red against.
  const image = (title, across, down) => {
    const canvas = make('canvas', {width: across.length, height: down.length});
    const paint = canvas.getContext('2d');
    const largest = d3.max(across, Math.abs) * d3.max(down, Math.abs) || 1;
    const colour = d3.scaleSequential(d3.interpolateRdBu).domain([-1, 1]);
    const pixels = paint.createImageData(across.length, down.length);
    down.forEach((b, i) => across.forEach((a, k) => {
      const c = d3.rgb(colour(a * b / largest));
      pixels.data.set([c.r, c.g, c.b, 255], 4 * ((down.length - 1 - i) * across.length + k));
    }));
    paint.putImageData(pixels, 0, 0);
    return make('img', {src: canvas.toDataURL('image/png'), alt: title, width: 340, height: 255});
  };

  // ---- what a column says --------------------------------------------------------------------------------------------

  const isDrawnAs = (m, kind) => data.modes[m].drawn_as === kind;
  const rowsOf = (column, m) => column.rows || data.modes[m].rows;
  const nameOf = (column, m, k) => {
    const names = column.names || data.modes[m].names;
    return names ? names[k] : String(Math.round(rowsOf(column, m)[k]));
  };
  const namesOf = (column, m) => column.values.map((_, k) => nameOf(column, m, k));
  const largest = (column, m, most) => column.values.map((v, k) => [v, k]).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))
    .slice(0, most).filter(([v]) => v !== 0).map(([v, k]) => `${nameOf(column, m, k)} (${v.toPrecision(2)})`).join(', ');

  const figure = (column, m, r) => {
    const mode = data.modes[m];
    const title = `Component ${r + 1}, ${mode.name}`;
    const said = column.values.some((v) => v !== 0) ? `Largest: ${largest(column, m, 5)}.` : 'All numbers are 0.';
    const names = namesOf(column, m);
    const drawn = !draws ? [] : isDrawnAs(m, 'line')
      ? [line(small, title, said, mode.rows, column.values, mode.names ? {tick: (v) => mode.names[mode.rows.indexOf(v)] || ''} : {})]
      : isDrawnAs(m, 'bars') ? [bars(small, title, said, names, column.values)] : [leading(title, said, names, column.values)];
    return make('figure', {}, make('figcaption', {}, mode.name), ...drawn,
      behind('as a table', table(`${title}: ${mode.why}`, ['row', 'number'],
        column.values.map((v, k) => [names[k], short(v)]), (k) => k === 1)));
  };

  const component = (c, r) => {
    const lines = data.modes.map((_, m) => m).filter((m) => isDrawnAs(m, 'line'));
    const figures = c.columns.map((column, m) => figure(column, m, r));
    if (draws && lines.length === 2) {
      const [down, across] = lines;
      const title = `${data.modes[across].name} (across) by ${data.modes[down].name} (up)`;
      figures.push(make('figure', {}, make('figcaption', {}, title),
        image(`Component ${r + 1}: ${title}, their outer product; blue is positive, red negative`,
          c.columns[across].values, c.columns[down].values)));
    }
    const id = `component${r + 1}`;
    return make('article', {class: 'component', 'aria-labelledby': id},
      make('h3', {id}, `Component ${r + 1}: weight ${short(c.weight)}`), make('div', {class: 'modes'}, ...figures));
  };

  // ---- the sections --------------------------------------------------------------------------------------------------

  const dims = data.dims.join(' × ');
  const title = data.title || `CP decomposition of a ${dims} tensor`;
  document.title = title;
  document.querySelector('h1').textContent = title;
  into('lead', `${count(data.rank, 'component', 'components')} explain ${(100 * report.explained).toFixed(1)} % of the ` +
    `sum of squares of a ${data.tensor ? data.tensor.sparse ? 'sparse ' : 'dense ' : ''}tensor of ${dims}.`);

  const stopped = {tol: 'the fit hardly changed any more', max_iters: 'as many iterations as were allowed',
    max_seconds: 'the time was up', callback: 'the caller ended it'}[report.stop_reason] || report.stop_reason;
  into('findings', ...(data.findings.length ? data.findings.map((text) => make('p', {class: 'note', role: 'note'}, text.charAt(0).toUpperCase() + text.slice(1)))
    : [make('p', {}, 'Nothing suspicious was found: no components that are alike or cancel each other, no lost rank, and the run ended by its tolerance.')]));

  const big = (what, value) => make('li', {}, make('strong', {}, value), what);
  into('facts', make('ul', {class: 'figures'}, big('fit', report.fit.toFixed(4)),
    big('explained', `${(100 * report.explained).toFixed(2)} %`), big('relative error', short(report.relative)),
    big('rank', String(data.rank)), big('effective rank', String(report.effective_rank)),
    big('iterations', String(report.iterations)), big('time', seconds(report.seconds.total))));
  const facts = [['dims', dims]];
  if (data.tensor) {
    facts.unshift(['tensor', data.tensor.description]);
    if (data.tensor.source) facts.push(['file', data.tensor.source]);
    facts.push(['values', `${short(data.tensor.min)} to ${short(data.tensor.max)}`]);
  }
  facts.push(['norm', short(report.norm)], ['modes', data.modes.map((mode) => `${mode.name} (${mode.dim})`).join(', ')]);
  into('facts', pairs('The tensor', facts));

  const history = data.history;
  into('fit', make('p', {}, `From the start "${report.init}" it took ${count(report.iterations, 'iteration', 'iterations')}; ` +
    `it ended because: ${stopped}.`));
  if (draws && history.fit.length) into('fit', make('figure', {}, line({...alone, bottom: 42}, 'Fit by iteration',
    `From ${short(history.fit[0])} to ${short(report.fit)} in ${report.iterations} iterations.`, history.iteration, history.fit,
    {withZero: false, dots: history.fit.length <= 60, label: 'iteration'})));
  into('fit', behind('as a table', table('Fit by iteration', ['iteration', 'fit', 'change', 'residual', 'time'],
    history.iteration.map((n, k) => [n, history.fit[k].toFixed(6), short(history.fit_change[k]), short(history.residual[k]),
      seconds(history.seconds[k])]), (k) => k > 0)));

  if (draws) into('weights', make('figure', {}, bars(alone, 'Weights',
    `From ${short(data.weights[0])} to ${short(data.weights[data.weights.length - 1])}.`,
    data.weights.map((_, r) => String(r + 1)), data.weights)));
  into('weights', behind('as a table', table('Weights', ['component', 'weight'],
    data.weights.map((w, r) => [r + 1, short(w)]), (k) => k === 1)));

  const whys = data.modes.map((mode) => `${mode.name}: ${mode.why}`);
  into('components', make('p', {class: 'quiet'}, `Rows count from 0. Columns have length 1. Blue counts with a component, red against it. What is drawn: ${whys.join('; ')}.` +
    (data.components.length < data.rank ? ` The first ${data.components.length} of ${data.rank} are shown.` : '')),
    ...data.components.map(component));

  const t = report.seconds;
  into('plan', table('Seconds', ['stage', 'time', 'of all'], [['start', t.init], ['MTTKRP', t.mttkrp], ['solves', t.solve],
    ['fit', t.fit], ['all', t.total]].map(([what, s]) => [what, seconds(s), t.total > 0 ? `${(100 * s / t.total).toFixed(0)} %` : '']),
    (k) => k > 0));
  if (data.plan) into('plan', pairs('The plan: what was chosen, and why', data.plan.trim().split('\n').map((text) => {
    const [, what, is] = /^(.*?)\s{2,}(.*)$/.exec(text) || [null, '', text];
    return [what, is];
  })));
  else into('plan', pairs('Where', [['devices', report.devices], ['format', report.format]]));

  const settings = Object.entries(data.options);
  if (data.command) into('repeat', make('pre', {tabindex: '0'}, make('code', {}, data.command)));
  into('repeat', make('p', {}, settings.length ? 'Options that were not at their defaults:' : 'All options of the method were at their defaults.'));
  if (settings.length) into('repeat', table('Options', ['option', 'value'], settings, () => false));
})();
