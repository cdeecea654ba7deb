package embed
import ("testing")
func BenchmarkTile(b *testing.B){
 a:=make([]float32,6*384); p:=make([]float32,32*384); d:=make([]float32,6*384); bias:=make([]float32,32)
 for b.Loop(){ tile6x32(&d[0],384,&a[0],384,&p[0],384,&bias[0]) }
 b.ReportMetric(float64(b.N)*384*12*16*2/b.Elapsed().Seconds()/1e9,"GFLOPS")
}
