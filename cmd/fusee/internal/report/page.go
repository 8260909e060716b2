package report

// pageSource is the template of the page. Everything it shows is inside it, so that the file can be sent to somebody.
const pageSource = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mark: #dc2626; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin: 2.5rem 0 0 } h3 { font-size: 1rem; margin: 1.2rem 0 .4rem }
pre, code { font: 13px/1.45 ui-monospace, monospace }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; border-radius: 6px; margin: .4rem 0 }
article { border-top: 1px solid var(--line); margin-top: 2rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
td.number { text-align: right; opacity: .6 } .quiet { opacity: .7 }
mark { background: none; color: var(--mark); text-decoration: underline wavy; text-underline-offset: 3px; font-weight: 600 }
.drawing { overflow: auto; background: #fff; border-radius: 6px; border: 1px solid var(--line); padding: .5rem; max-height: 40rem }
nav li { margin: .1rem 0 }
</style>
{{define "place"}}{{if .File}}<div class="quiet">{{where .}}</div>{{end -}}
{{if .Source}}{{with marked .}}<pre>{{.Before}}<mark>{{.Marked}}</mark>{{.After}}</pre>{{end}}{{end}}{{end}}
{{define "break"}}<p><strong>{{.Message}}</strong> <code>{{.ID}}</code></p>{{template "place" .Place}}
{{if .Hint}}<p>Hint: {{.Hint}}</p>{{end}}{{end}}
<h1>{{.Title}}</h1>
<p>{{count (len .Reports) "compilation"}}</p>
<nav><ol>{{range $i, $r := .Reports}}<li><a href="#r{{$i}}">{{$r.Function.Name}}</a> <span class="quiet">{{summary $r.Report}}</span></li>{{end}}</ol></nav>
{{range $i, $r := .Reports}}<article id="r{{$i}}">
<h2>{{.Function.Name}}{{if .Function.ResumesAt}}, from line {{.Function.ResumesAt}} on{{end}}</h2>
<div class="quiet">{{.Function.File}}:{{.Function.Line}}</div>
<p>{{summary .Report}}</p>
{{with .Recompile}}{{if .Failed}}<h3>Recompiled, since no entry fitted the call</h3>
<table>{{range .Failed}}<tr><td class="number">entry {{.Entry}}</td><td>guard {{.Guard}}, <code>{{.Text}}</code>:
was <code>{{.Old}}</code>, now <code>{{.New}}</code>{{template "place" .Place}}</td></tr>{{end}}</table>{{end}}{{end}}
{{range .Pictures}}<h3>Graph {{.Name}}, {{count .Operations "operation"}}</h3>
{{if .SVG}}<div class="drawing">{{.SVG}}</div>{{end}}{{if .Missing}}<p class="quiet">{{.Missing}}</p>{{end}}
<details{{if not .SVG}} open{{end}}><summary>As text</summary><pre>{{.Text}}</pre></details>{{end}}
{{if .Kernels}}<h3>Kernels</h3>{{range .Kernels}}
<details><summary><code>{{.Name}}</code> ({{.Target}}, {{.Kind}}): {{join .Operations}}</summary>{{if .Source}}<pre>{{.Source}}</pre>{{else}}<p class="quiet">A call into the library.</p>{{end}}</details>{{end}}{{end}}
{{with .Reason}}<h3>Why it is not compiled</h3>{{template "break" .}}{{end}}
{{if .Breaks}}<h3>Breaks</h3><ol>{{range .Breaks}}<li>{{template "break" .}}</li>{{end}}</ol>{{end}}
{{if .Guards}}<h3>Guards</h3><table>{{range $n, $g := .Guards}}<tr><td class="number">{{$n}}</td>
<td><code>{{$g.Text}}</code></td><td>{{$g.Reason}}</td><td class="quiet">{{if $g.Line}}{{where $g.Place}}{{end}}</td></tr>{{end}}</table>{{end}}
{{if .Times}}<h3>Times</h3><p>{{stages .Times}}</p>{{end}}
</article>{{end}}
</html>
`
