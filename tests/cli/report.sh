# td cpd --report: a page that looks like something at the widths of a phone and of a desk, and the data in it.
source "$(dirname "$0")/support.sh"

# Two modes along axes, and a hostile name.
expect 0 "$td" generate x.tdb --dims 6x40x50 --rank 2 --dense --seed 3
expect 0 "$td" cpd x.tdb --rank 2 --max-iters 7 --tol 0 --seed 4 --report run.html --line-modes 1,2 \
  --mode-names "site,day</script>,depth" --report-title 'A <b>run</b>'
says out "report    written to run.html"
expect 0 "$td" cpd x.tdb --rank 2 --max-iters 7 --tol 0 --seed 4 --report run.json --line-modes 1,2 --quiet
is_json run.json 'd["rank"] == 2 and d["dims"] == [6, 40, 50] and len(d["history"]["fit"]) == 7'
is_json run.json '[m["drawn_as"] for m in d["modes"]] == ["bars", "line", "line"] and len(d["components"]) == 2'
is_json run.json 'len(d["components"][1]["columns"][2]["values"]) == 50 and d["options"]["seed"] == "4"'
is_json run.json 'd["command"] == "td cpd x.tdb --rank 2 --line-modes 1,2 --max-iters 7 --seed 4 --tol 0"'
is_json run.json 'any("max_iters" in f for f in d["findings"]) and "mode 2" in d["plan"]'

# Names of a table's columns and rows come out again, and months in order are an axis.
{
  echo user,item,when,count
  for month in 01 02 03 04; do
    for user in ann bob; do echo "$user,tea,2024-$month-09,$((10#$month))"; done
    echo "<i>eve</i>,nuts,2024-$month-01,$((5 - 10#$month))"
  done
} >visits.csv
expect 0 "$td" cpd visits.csv --columns user,item,when:%Y-%m --value count --rank 2 --report visits.json --quiet
is_json visits.json '[m["name"] for m in d["modes"]] == ["user", "item", "when"]'
is_json visits.json '[m["drawn_as"] for m in d["modes"]] == ["leading", "leading", "line"]'
is_json visits.json 'd["modes"][2]["names"] == ["2024-01", "2024-02", "2024-03", "2024-04"]'
is_json visits.json '{n for c in d["components"] for n in c["columns"][0]["names"]} == {"ann", "bob", "<i>eve</i>"}'
is_json visits.json '"--columns" in d["command"]'

# What cannot be is refused before the work.
expect 2 "$td" cpd x.tdb --rank 2 --report run.pdf
says err "a report's name ends with .html, .htm or .json"
expect 2 "$td" cpd x.tdb --rank 2 --report x.tdb
expect 2 "$td" cpd x.tdb --rank 2 --output m.html --report m.html
expect 3 "$td" cpd x.tdb --rank 2 --report nowhere/run.html
[ $failed -eq 0 ] || finish

if ! command -v chromium >/dev/null; then
  skip "the page was written, but there is no chromium to look at it (Debian's package chromium)"
fi
browse() { timeout 120 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage \
  --user-data-dir="$work/profile" "$@" 2>/dev/null; }

# The page in a frame as wide as a phone or a desk (no window is narrower than 500): the page says how wide it became and
# how many images it has, and the picture of it is looked at by a page that counts its pixels.
cat run.html - >measured.html <<'END'
<script>parent.postMessage([innerWidth, document.documentElement.scrollWidth, document.images.length].join(' '), '*');</script>
END
for width in 390 1200; do
  cat >framed.html <<END
<body style="margin:0"><iframe src="measured.html" style="border:0;width:${width}px;height:2000px"></iframe>
<script>onmessage = (e) => { document.body.dataset.wide = e.data; };</script>
END
  browse --window-size=1200,2000 --virtual-time-budget=5000 --dump-dom "file://$work/framed.html" >dom
  grep -q "data-wide=\"$width $width 2\"" dom ||
    fail "width $width: $(grep -o 'data-wide="[^"]*"' dom), expected no overflow and an image a component"
  browse --window-size=1200,2000 --virtual-time-budget=5000 --screenshot=picture.png "file://$work/framed.html" >/dev/null
  cat >counted.html <<END
<img src="data:image/png;base64,$(base64 -w0 picture.png)">
<script>
document.images[0].onload = (e) => {
  const canvas = document.createElement('canvas'), size = [canvas.width, canvas.height] = [e.target.width, e.target.height];
  canvas.getContext('2d').drawImage(e.target, 0, 0);
  const pixels = canvas.getContext('2d').getImageData(0, 0, $width, size[1]).data;
  let marked = 0, blue = 0;
  for (let k = 0; k < pixels.length; k += 4) {
    marked += Math.min(pixels[k], pixels[k + 1], pixels[k + 2]) < 220;
    blue += pixels[k + 2] > pixels[k] + 80; // bars and curves
  }
  document.body.dataset.came = [size[1], Math.round(1000 * marked / ($width * size[1])), Math.round(blue / 1000)].join(' ');
};
</script>
END
  browse --virtual-time-budget=5000 --dump-dom "file://$work/counted.html" >dom
  came=$(grep -o 'data-came="[^"]*"' dom | tr -dc '0-9 ')
  echo "width $width: height, marked pixels in 1000, thousands that are blue: $came"
  read -r height marked blue <<<"$came"
  [ "${height:-0}" -eq 2000 ] && [ "$marked" -gt 20 ] && [ "$marked" -lt 600 ] && [ "$blue" -gt 2 ] ||
    fail "width $width: the picture is not of a page: $came"
done

# Without D3, as a build that did not find it leaves it, tables stand open in the drawings' places.
sed '/^<!-- D3:/,/<\/script>$/d' run.html >plain.html
[ "$(wc -c <plain.html)" -lt 60000 ] || fail "D3 is still in the page, or the page is large without it"
browse --dump-dom "file://$work/plain.html" >dom
grep -q '<svg\|<img' dom && fail "something is drawn without D3"
[ "$(grep -o '<details open' dom | wc -l)" -eq 8 ] || fail "tables are not open without D3: $(grep -o '<details[^>]*' dom | sort | uniq -c)"

browse --dump-dom "file://$work/run.html" >dom
# Its text: what a person reads, what a screen reader announces, and nothing that a name can make of it.
python3 - dom <<'END' || fail "the page's text is not as it should be"
import html.parser, sys
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.inside, self.count, self.named, self.drawings = [], [], {}, set(), []
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("meta", "img", "input", "br", "path", "rect", "line"):
            self.inside.append(tag)
        self.named.add(a.get("id"))
        if a.get("role") == "img":
            self.drawings.append(a["aria-labelledby"].split())
        assert tag != "img" or a["alt"].startswith("Component "), a
        assert not any(str(a.get(k)).startswith(("http:", "https:", "//")) for k in ("src", "href")), a
    def handle_endtag(self, tag):
        while tag in self.inside and self.inside.pop() != tag:
            pass
    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.text.append(data)
page = Page()
page.feed(open(sys.argv[1]).read())
text = " ".join(page.text)
for said in ("A <b>run</b>", "day</script>", "Component 2: weight", "ended by max_iters", "effective rank", "6 × 40 × 50",
             "Rows count from 0", "td cpd x.tdb --rank 2"):
    assert said in text, (said, text[:2000])
assert page.count.get("b", 0) == 0 and page.count["h1"] == 1 and page.count["article"] == 2, page.count
assert page.count["svg"] == 2 + 2 * 3 and len(page.drawings) == page.count["svg"], page.count
assert all(name in page.named for names in page.drawings for name in names)
assert page.count["caption"] == page.count["table"] >= 2 + 2 * 3, page.count
END
finish
